"""The published methods that schedule graphs, one room per kind of system."""
