"""Schedules as text, one room per kind of system."""
