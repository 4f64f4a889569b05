"""Tiles that come through a port, and their rows, by a walk through the loops that knows no expressions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.workloads.mapping.operator import Operator, Tensor

Loops = list[tuple[str, int]]
"""Dimensions and tiles, outermost first."""


def walk(operator: Operator, loops: Loops) -> Iterator[tuple[tuple[int, ...], dict[str, tuple[int, int]]]]:
    """Indices of all loops at every step, and the piece of every dimension there."""

    def inside(
        place: int, index: tuple[int, ...], left: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, ...], dict[str, tuple[int, int]]]]:
        if place == len(loops):
            yield index, left
            return
        dim, tile = loops[place]
        begin, end = left[dim]
        for number, start in enumerate(range(begin, end, tile)):
            yield from inside(place + 1, (*index, number), {**left, dim: (start, min(end, start + tile))})

    yield from inside(0, (), {dim: (0, bound) for dim, bound in operator.bounds.items()})


def arrivals(
    operator: Operator, tensor: Tensor, loops: Loops, every: bool
) -> Iterator[dict[str, tuple[int, int]]]:
    """The pieces at every step at which a tensor's tile comes anew."""
    left, iterates = dict(operator.bounds), []
    for dim, tile in loops:
        iterates.append(tile < left[dim])
        left[dim] = tile
    own = [place for place, (dim, _) in enumerate(loops) if iterates[place] and dim in tensor.dims]
    innermost = max(own, default=-1)
    before: tuple[int, ...] | None = None
    for index, pieces in walk(operator, loops):
        changed = (
            0
            if before is None
            else next(i for i, (a, b) in enumerate(zip(before, index, strict=True)) if a != b)
        )
        if every or before is None or changed <= innermost:
            yield pieces
        before = index


def rows_of(tensor: Tensor, pieces: dict[str, tuple[int, int]], tiles: dict[str, int], row: int) -> int:
    """Rows of one tile: all axes but the last as they are, the last as long as a whole tile."""
    sizes = {dim: end - begin for dim, (begin, end) in pieces.items()}
    lines = math.prod(axis.extent(sizes) for axis in tensor.axes[:-1])
    return lines * -(-tensor.axes[-1].extent(tiles) // row)
