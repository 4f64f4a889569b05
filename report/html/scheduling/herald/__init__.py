"""Pages about schedules on heterogeneous sub-accelerators."""
