"""Even storage: a tree for each storage pattern, and bounds of all patterns together."""
