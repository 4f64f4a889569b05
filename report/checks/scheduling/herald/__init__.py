"""Checks of schedules and co-designs on heterogeneous sub-accelerators."""
