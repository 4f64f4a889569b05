"""Plots for papers: one module per kind, named in ``registry.py``."""
