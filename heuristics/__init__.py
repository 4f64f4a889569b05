"""The published search methods, each a warm start and a fallback for the exact side."""
