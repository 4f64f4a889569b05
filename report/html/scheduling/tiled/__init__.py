"""Pages about plans on tiled machines."""
