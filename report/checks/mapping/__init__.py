"""Checks of documents of mappings."""
