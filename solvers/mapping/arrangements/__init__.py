"""Uneven storage: a tree for each arrangement, and bounds of many arrangements at once."""
