"""Formats of other mappers: one module per format and direction, listed in ``registry.py`` above."""
