"""What computes it: engines of memory levels, PE arrays and networks, as YAML presets."""
