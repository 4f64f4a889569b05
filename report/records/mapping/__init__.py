"""Documents of mappings."""
