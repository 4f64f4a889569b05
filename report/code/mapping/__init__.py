"""Mappings of layers as code."""
