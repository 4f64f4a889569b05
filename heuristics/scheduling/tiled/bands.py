"""Bands of rows that run through all layers of a small network, one after the other.

Every atom makes some rows of its layer with all their columns, or those of one of all engines, and complete
sums, so that a result is read soon after it is made and does not leave the buffers, where whole layers would.
How many rows, and into how many parts the channels are cut, is the same for all layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, COLUMN, ROW, shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.heuristics.scheduling.tiled.refining import Sizes

CHANNEL_CUTS = (1, 2, 4, 8)
"""Parts into which all channels of a band are cut."""


def widest_result(dag: AtomicDag) -> int:
    """Bytes of the largest result of a layer, of all samples."""
    return int(np.add.reduceat(dag.block_bytes[: dag.tasks], dag.base[:-1]).max())


def band_sizes(problem: TiledProblem, rows: int, channel_cuts: int, column_cuts: int = 1) -> Sizes:
    """Per unit, atoms of some rows, and of a part of the channels and columns.

    Parameters
    ----------
    rows : of each atom
    channel_cuts, column_cuts : parts into which all channels and all columns are cut
    """
    sizes = []
    for unit in problem.units:
        shape = shape_of(unit.layer.operator)
        outputs = -(-shape.sizes[CHANNEL] // channel_cuts)
        columns = -(-shape.sizes[COLUMN] // column_cuts)
        sizes.append(AtomSize(rows, columns, shape.parts, outputs))
    return tuple(sizes)


def all_band_sizes(problem: TiledProblem, most: int) -> Iterator[tuple[str, Sizes]]:
    """Bands of 1, 2, 4, ... rows up to whole layers, with a name for each, of at most so many atoms."""
    tallest = max(shape_of(unit.layer.operator).sizes[ROW] for unit in problem.units)
    powers = range((tallest - 1).bit_length() + 1)
    shares = sorted({1, problem.machine.engines})
    for channel_cuts, power, column_cuts in itertools.product(CHANNEL_CUTS, powers, shares):
        sizes = band_sizes(problem, 1 << power, channel_cuts, column_cuts)
        pairs = zip(problem.units, sizes, strict=True)
        if sum(atom_count(unit, size, problem.batch) for unit, size in pairs) <= most:
            divided = f", columns in {column_cuts}" if column_cuts > 1 else ""
            yield f"bands of {1 << power} rows, channels in {channel_cuts}{divided}", sizes
