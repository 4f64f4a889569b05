"""Documents: results as data, written and read back."""
