"""Quick ways to fuse layers: which groups, and which tree for each; turns are mapped by the solver."""
