"""Tiled machines: a grid of engines with buffers, links between them, and ports to DRAM."""
