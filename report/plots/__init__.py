"""Figures, drawn with matplotlib (the extra ``plots``); those of benchmarks are named in ``registry.py``."""
