"""Pages about schedules, one room per kind of system."""
