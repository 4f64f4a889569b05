"""Networks mapped layer by layer."""
