"""Plans on tiled machines as tables."""
