"""Rows of tiles, and values of expressions at them: computed once, read by all searches of a layer."""
