"""Pages about schedules, one folder per kind of system."""
