"""Proven chains of segments: best-first on the estimates until they meet the best chain known."""
