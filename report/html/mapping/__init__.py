"""Pages about mappings."""
