"""Schedules as text, one folder per kind of system."""
