"""Machines, layers, constraints and mappings in formats of other programs, and what does not carry over."""
