"""Proven resource allocation trees: chains by dynamic programming, all trees of small networks, bounds."""
