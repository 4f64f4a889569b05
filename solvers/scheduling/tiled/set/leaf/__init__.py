"""What a leaf, and a layer in any leaf, takes at least."""
