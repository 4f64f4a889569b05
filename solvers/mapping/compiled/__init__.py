"""Machine code of branch and bound: the program of bounds, the loop that splits nodes, what both read."""
