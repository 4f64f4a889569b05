"""Schedules on heterogeneous sub-accelerators as text."""
