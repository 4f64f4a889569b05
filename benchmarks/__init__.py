"""Measured comparisons, each with the command that makes it."""
