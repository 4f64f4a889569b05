"""Checks of documents of schedules, one folder per kind of system."""
