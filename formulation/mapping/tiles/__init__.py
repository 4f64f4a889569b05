"""Tiles of dimensions, the rows that they form, and the pieces and windows that they cut."""
