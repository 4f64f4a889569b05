"""The verb ``map`` and its parts."""
