"""Layouts: every layer shared out over rectangles of engines, chosen over all layers at once."""
