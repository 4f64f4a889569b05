"""Mappings and schedules of neural networks on spatial accelerators, with proofs."""

__version__ = "0.1.0"

__all__ = ["__version__"]
