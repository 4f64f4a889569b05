"""What the program shows and hears: console, progress, signals, files that are saved."""
