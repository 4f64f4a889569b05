"""Terminal: console, progress, signals, files that are saved."""
