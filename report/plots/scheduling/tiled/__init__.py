"""Pictures of plans on tiled machines."""
