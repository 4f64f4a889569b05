"""Quick schedules on tiled machines: layer by layer, and by lists."""
