"""Workloads of several networks."""
