"""Documents of schedules, one folder per kind of system."""
