"""Schedules on systems: cost tables, bounds, exact solvers, searches for partitions."""
