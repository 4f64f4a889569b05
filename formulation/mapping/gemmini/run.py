"""What Gemmini's library does when it runs a mapping: calls, rows that its DMA moves, instructions.

The library cuts a layer into tiles and calls the loop unit once for each; nothing stays in the scratchpad
from one call to the next.  The measured runs took blocks as large as the mapping's larger spatial factor,
rounded up to a power of two of at least 4 (``docs/gemmini.md``).  Matrix products give tiles in blocks of
16 elements, which the run multiplied by that side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.formulation.mapping.gemmini.row import Row

LINE = 64
"""Bytes of a cache line, and of the longest row that the DMA moves at once."""
_LINES = 8192
"""Lines of the shared cache: 512 kB in 8 ways."""
_SETS = 1024
_BLOCKS = 4
"""Blocks of the array's side that one row spans at most in a matrix product."""
_GRAIN = 16
"""Elements that the measuring program took for one block when it cut matrix products."""


@dataclass(frozen=True, slots=True)
class Run:
    """Counts of a whole run.

    Parameters
    ----------
    is_product : run as a matrix product, whose calls take less time to prepare
    calls : of the loop unit
    rows : that the DMA fetches: runs of at most 64 bytes of inputs and weights
    bytes : in them
    missed : rows of weights, each weighed by the share of them that the shared cache has lost again
    instructions : one each for a block of weights and at most one array's side of outputs
    streamed : rows of inputs that pass the array, one a cycle
    empty : calls whose inputs lie wholly in the padding, where the loop unit's counters wrap around
    """

    is_product: bool
    calls: int
    rows: int
    bytes: int
    missed: float
    instructions: int
    streamed: int
    empty: int


def run_of(row: Row) -> Run:
    """The run of a row's mapping."""
    side = array_side(row)
    return _product(row, side) if row.is_product else _convolution(row, side)


def array_side(row: Row) -> int:
    """The side of the array that the mapping's spatial factors ask for."""
    side = 4
    while side < max(row.spatial.values()):
        side *= 2
    return side


def _product(row: Row, side: int) -> Run:
    """Outputs ``P`` of all samples by ``K``, summed over ``C``."""
    bounds = {**row.bounds, "P": row.bounds["P"] * row.bounds["N"]}
    sizes = {**row.tile, "P": row.tile["P"] * row.tile["N"]}
    blocks = {dim: -(-bounds[dim] // side) for dim in "PKC"}
    tile = {dim: max(1, sizes[dim] // _GRAIN) for dim in "PKC"}
    calls = {dim: -(-blocks[dim] // tile[dim]) for dim in "PKC"}
    along = {dim: _chunks(blocks[dim], tile[dim]) for dim in "KC"}
    fetched_weights = calls["P"] * bounds["C"] * along["K"]
    lines = min(tile["C"] * side, bounds["C"]) * -(-min(tile["K"] * side, bounds["K"]) // LINE)
    instructions = blocks["P"] * blocks["K"] * blocks["C"]
    return Run(
        is_product=True,
        calls=math.prod(calls.values()),
        rows=calls["K"] * bounds["P"] * along["C"] + fetched_weights,
        bytes=calls["K"] * bounds["P"] * bounds["C"] + calls["P"] * bounds["C"] * bounds["K"],
        missed=fetched_weights * _lost(lines, bounds["K"]),
        instructions=instructions,
        streamed=bounds["P"] * blocks["K"] * blocks["C"],
        empty=0,
    )


def _chunks(blocks: int, tile: int) -> int:
    """Rows that one line of a matrix is fetched in, over all tiles along it."""
    whole, rest = divmod(blocks, tile)
    return whole * -(-tile // _BLOCKS) + -(-rest // _BLOCKS)


def _convolution(row: Row, side: int) -> Run:
    """A square picture; filters of even size make one more row and column of outputs than the layer has."""
    tile, bounds, kernel = row.tile, row.bounds, row.bounds["R"]
    padding, picture = kernel // 2, bounds["P"] * row.stride
    outputs = (picture + 2 * padding - kernel) // row.stride + 1
    rows = _Axis.of(outputs, tile["Q"], kernel, tile["S"], row.stride, padding, picture)
    columns = _Axis.of(outputs, tile["P"], kernel, tile["R"], row.stride, padding, picture)
    calls = {dim: -(-bounds[dim] // tile[dim]) for dim in "NKC"}
    others, batches = math.prod(calls.values()), bounds["N"]
    widest = max(LINE, side)
    per_pixel = calls["K"] * calls["N"] * rows.fetched * columns.fetched
    taps = kernel * kernel
    places = rows.outer * columns.outer * calls["N"]
    fetched_weights = places * taps * bounds["C"] * calls["K"] * -(-tile["K"] // widest)
    lines = tile["R"] * tile["S"] * tile["C"] * -(-tile["K"] // LINE)
    blocks = calls["K"] * -(-tile["K"] // side) * calls["C"] * -(-tile["C"] // side)
    strips = columns.outer * -(-tile["P"] // side)
    return Run(
        is_product=False,
        calls=others * rows.calls * columns.calls,
        rows=per_pixel * calls["C"] * -(-tile["C"] // widest) + fetched_weights,
        bytes=per_pixel * bounds["C"] + places * taps * bounds["C"] * bounds["K"],
        missed=fetched_weights * _lost(lines, bounds["K"]),
        instructions=batches * taps * blocks * outputs * strips,
        streamed=batches * taps * blocks * outputs * outputs,
        empty=(rows.empty * columns.calls + columns.empty * rows.calls - rows.empty * columns.empty) * others,
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """Tiles along one axis of the picture: how many, inputs fetched for all, and how many are padding."""

    outer: int
    calls: int
    fetched: int
    empty: int

    @classmethod
    def of(
        cls, outputs: int, tile: int, kernel: int, taps: int, stride: int, padding: int, picture: int
    ) -> _Axis:
        """Cut outputs and filter taps into tiles, as the library's loops do.

        Parameters
        ----------
        outputs, tile : along the axis, all and in one call
        kernel, taps : of the filter, all and in one call
        stride : in inputs
        padding : inputs outside of the picture, on either side
        picture : inputs along the axis
        """
        calls = fetched = empty = 0
        for first in range(0, outputs, tile):
            for tap in range(0, kernel, taps):
                start = first * stride + tap - padding
                # The library fetches whole strides, also after the last output.
                extent = min(tile, outputs - first) * stride + min(taps, kernel - tap) - 1
                outside = max(0, -start) + max(0, start + extent - picture)
                calls, fetched, empty = calls + 1, fetched + extent, empty + (outside > extent)
        return cls(-(-outputs // tile), calls, fetched, empty)


def _lost(lines: int, channels: int) -> float:
    """The share of a tile's weights that the cache loses between two calls.

    Rows of weights lie as many bytes apart as there are output channels; a power of two among them leaves
    few sets of the cache to them.
    """
    apart = channels // LINE if channels % LINE == 0 else 1
    room = _LINES // math.gcd(max(1, apart), _SETS)
    return max(0.0, 1 - room / lines)
