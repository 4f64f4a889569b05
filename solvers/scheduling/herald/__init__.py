"""Schedules on heterogeneous sub-accelerators: cost tables, bounds, exact solvers, partitions."""
