"""Co-design: the search for a partition of a chip's resources."""
