"""Pictures of schedules on heterogeneous sub-accelerators."""
