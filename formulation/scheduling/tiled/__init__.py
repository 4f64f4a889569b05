"""Plans of one network on a tiled machine: atoms, their graph, the plan, evaluation, routing, residency."""
