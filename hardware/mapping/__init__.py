"""Engines: one layer runs on one of them."""
