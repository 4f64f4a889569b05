"""Checks of documents of schedules, one room per kind of system."""
