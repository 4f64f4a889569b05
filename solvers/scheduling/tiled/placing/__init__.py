"""Engines of several consecutive rounds chosen together: the quadratic problem behind equation 2."""
