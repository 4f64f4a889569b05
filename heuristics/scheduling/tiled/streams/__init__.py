"""Streams: layers that are read channel by channel run tile by tile."""
