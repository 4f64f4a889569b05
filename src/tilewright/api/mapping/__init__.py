"""Layers and networks on one machine."""
