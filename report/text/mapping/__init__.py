"""Mappings as text."""
