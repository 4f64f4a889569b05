"""Documents of plans on tiled machines."""
