"""Plans of one network on a tiled machine: atoms, their graph, the plan, its evaluation and completion."""
