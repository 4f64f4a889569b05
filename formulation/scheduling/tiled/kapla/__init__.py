"""Segments of layers, spread over the machine or in turn on it, and what one costs at least (KAPLA, Tangram)."""
