"""Pictures of schedules, one room per kind of system."""
