"""What fused mappings take at least, before their trees or turns are listed."""
