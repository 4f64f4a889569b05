"""Drawings as SVG, in one file with neither script nor anything from the network."""
