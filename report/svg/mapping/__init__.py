"""Drawings of mappings."""
