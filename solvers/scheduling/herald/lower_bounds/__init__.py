"""Lower bounds of schedules: paths, loads, chains and relaxations by CP-SAT."""
