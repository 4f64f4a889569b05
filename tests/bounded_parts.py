"""Bounds of a machine's parts, searched to their end."""

from __future__ import annotations

from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds


def search_parts(bounds: SegmentBounds) -> None:
    """Find what each part costs at least."""
    bounds.begin()
    while bounds.go_on():
        pass
