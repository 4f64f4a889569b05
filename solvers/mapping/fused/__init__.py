"""Proven fused mappings of a group of layers."""
