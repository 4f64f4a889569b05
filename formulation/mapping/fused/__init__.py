"""Layers of one engine that pass results on without the outermost memory."""
