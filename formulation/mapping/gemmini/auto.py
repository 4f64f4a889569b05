"""The tiles that Gemmini's library takes by itself (``tiled_matmul_auto``, ``tiled_conv_auto``).

The rules are those of ``include/gemmini.h`` of ucb-bar/gemmini-rocc-tests at commit
928aba8cbdf87575d10b1b6e5826e74988d9de24, which the measured runs used: weight-stationary, half of the
scratchpad and of the accumulator because both are double-buffered; tiles of products grow in turn, tiles of
convolutions shrink until they fit and then grow again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

_ORDER = ("N", "Q", "P", "K", "S", "R", "C")
"""A convolution's dimensions in the order in which the library looks at them; ``P`` are columns here."""


@dataclass(frozen=True, slots=True)
class Memories:
    """What the library's header says of the machine.

    Parameters
    ----------
    side : PEs along each side of the array
    scratchpad, accumulator : rows, both buffers together; a row has as many elements as the array a side
    """

    side: int = 16
    scratchpad: int = 16384
    accumulator: int = 1024


def auto_tiles(bounds: MappingABC[str, int], stride: int, memories: Memories) -> dict[str, int]:
    """Tile sizes by dimension; of a product in whole blocks of the array's side, so at times over the bound.

    Parameters
    ----------
    bounds : of ``N K C P Q R S``; a product has ``P`` rows, ``K`` columns, and sums over ``C``
    stride : of a convolution
    memories : of the machine that the library was compiled for
    """
    if bounds["N"] * bounds["Q"] * bounds["R"] * bounds["S"] == 1:
        return _product(bounds, memories)
    return _convolution(bounds, stride, memories)


def _product(bounds: MappingABC[str, int], memories: Memories) -> dict[str, int]:
    side = memories.side
    most = {dim: -(-bounds[dim] // side) for dim in "PKC"}
    blocks, sums = memories.scratchpad // 2 // side, memories.accumulator // 2 // side
    square = math.isqrt(sums)
    # Products begin with half of that half of the scratchpad.
    tile = {
        "P": min(most["P"], square),
        "K": min(most["K"], square),
        "C": min(most["C"], memories.scratchpad // 4 // side // square),
    }

    def fits(tried: MappingABC[str, int]) -> bool:
        inside = (tried["P"] + tried["K"]) * tried["C"] <= blocks and tried["P"] * tried["K"] <= sums
        return inside and all(tried[dim] <= most[dim] for dim in "PKC")

    growing = True
    while growing:
        growing = False
        for dim in "KPC":
            larger = {**tile, dim: tile[dim] + 1}
            if fits(larger):
                tile, growing = larger, True
    return {**dict.fromkeys("NQRS", 1), **{dim: size * side for dim, size in tile.items()}}


def _convolution(bounds: MappingABC[str, int], stride: int, memories: Memories) -> dict[str, int]:
    side = memories.side
    tile = {dim: bounds[dim] for dim in _ORDER}

    def fits(tried: MappingABC[str, int]) -> bool:
        rows, columns = tried["Q"] * stride + tried["S"] - 1, tried["P"] * stride + tried["R"] - 1
        inputs = -(-tried["C"] // side) * tried["N"] * rows * columns
        channels = -(-tried["K"] // side)
        weights = channels * tried["R"] * tried["S"] * tried["C"]
        sums = channels * tried["N"] * tried["P"] * tried["Q"]
        return inputs + weights <= memories.scratchpad // 2 and sums <= memories.accumulator // 2

    while not fits(tile):
        # Columns are left alone where they fill the array just so, and there are rows to give.
        shrinkable = [dim for dim in _ORDER if not (dim == "P" and tile["P"] <= side and tile["Q"] > 1)]
        dim = max(shrinkable, key=lambda each: tile[each])
        if dim in "KC":
            tile[dim] = max(1, tile[dim] - (tile[dim] % side or side))
        else:
            tile[dim] -= 1
    while tile["P"] < bounds["P"] and fits({**tile, "P": tile["P"] + 1}):
        tile["P"] += 1
    growing = True
    while growing:
        growing = False
        for dim in _ORDER:
            larger = {**tile, dim: tile[dim] + 1}
            if tile[dim] < bounds[dim] and fits(larger):
                tile, growing = larger, True
    return tile
