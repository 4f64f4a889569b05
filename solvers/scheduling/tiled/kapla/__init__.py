"""Proven chains of segments: best-first search on lower bounds until they meet the best chain known."""
