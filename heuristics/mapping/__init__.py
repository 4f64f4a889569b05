"""The published methods that map one layer."""
