"""Segments of layers, spread over the machine or in turn on it, and lower bounds on their costs."""
