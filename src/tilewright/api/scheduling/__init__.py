"""Workloads on systems of several machines."""
