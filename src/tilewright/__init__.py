"""Mappings and schedules of neural networks on spatial accelerators, with proofs."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tilewright")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
