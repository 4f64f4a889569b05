"""The verbs ``map`` and ``explore``, and their parts."""
