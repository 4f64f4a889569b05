"""Checks of plans on tiled machines."""
