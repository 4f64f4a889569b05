"""Bounds and exact methods for plans on tiled machines."""
