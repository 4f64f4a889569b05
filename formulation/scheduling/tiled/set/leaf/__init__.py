"""Leaves of a tree: a layer as a box, its partition over tiles or row stripes, and what that costs."""
