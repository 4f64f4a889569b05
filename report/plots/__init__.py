"""Figures, drawn with matplotlib (the extra ``plots``)."""
