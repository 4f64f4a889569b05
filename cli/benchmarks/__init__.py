"""The verbs ``bench`` and ``runs``."""
