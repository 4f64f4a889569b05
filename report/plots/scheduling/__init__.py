"""Pictures of schedules, one folder per kind of system."""
