"""The verbs ``schedule`` and ``codesign`` and their parts."""
