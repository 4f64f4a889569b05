"""Documents of schedules on heterogeneous sub-accelerators."""
