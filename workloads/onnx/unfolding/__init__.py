"""Models opened node by node: branches, loops and functions, shapes, and the values of small constants."""
