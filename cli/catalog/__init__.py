"""The verbs ``list`` and ``show``."""
