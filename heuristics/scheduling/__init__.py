"""Quick schedules of graphs on systems of several engines."""
