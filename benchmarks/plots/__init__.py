"""Figures of a store of runs, named in ``registry.py``."""
