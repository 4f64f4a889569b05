"""How every unit is cut into atoms: borders along samples, channels, rows, columns and partial sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import (
    ACROSS,
    CHANNEL,
    COLUMN,
    PART,
    ROW,
    inner_run,
    shape_of,
)
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Int64s
from tilewright.workloads.mapping.operator import Operator

Borders = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AtomSize:
    """Sizes of a unit's atoms, the last one along an axis smaller where they do not divide.

    Parameters
    ----------
    rows, columns, inputs, outputs : output rows and columns, input and output channels ([h, w, c_in, c_out])
    samples : samples of one atom
    """

    rows: int
    columns: int
    inputs: int
    outputs: int
    samples: int = 1


@dataclass(frozen=True, slots=True)
class Tiling:
    """Borders of a unit's atoms: ascending, from 0 to the size of the axis.

    A tiling of a layer over several tiles (a group task) has the borders of its parts, such as
    ``ceil(n * i / p)``, and is as good as one by sizes.

    Parameters
    ----------
    across : of the columns of a pool's window, where its parts are divided along these, too; empty where they
        are not
    begins : per box of results of a sample, columns fastest and channels slowest, the part of the sum that a
        chain begins with; the others follow in their order, the first one after the last.  Empty where every
        chain begins with the first part
    """

    samples: Borders
    channels: Borders
    rows: Borders
    columns: Borders
    parts: Borders
    across: Borders = ()
    begins: tuple[int, ...] = ()

    @property
    def axes(self) -> tuple[Borders, Borders, Borders, Borders]:
        """By coordinate: channels, rows, columns, partial sums."""
        return self.channels, self.rows, self.columns, self.parts

    @property
    def divisions(self) -> int:
        """Parts of every sum."""
        return (len(self.parts) - 1) * max(1, len(self.across) - 1)

    @property
    def boxes(self) -> int:
        """Boxes of results of a range of samples."""
        return math.prod(len(cuts) - 1 for cuts in self.axes[:3])

    def slots_of_parts(self) -> Int64s:
        """In which place of its chain every part of a sum stands, shape (boxes, parts)."""
        parts = np.arange(self.divisions, dtype=np.int64)
        begins = np.array(self.begins or (0,) * self.boxes, dtype=np.int64)
        slots: Int64s = (parts - begins[:, None]) % len(parts)
        return slots

    def every(self, operator: Operator) -> tuple[Borders, Borders, Borders, Borders, Borders]:
        """Borders of an operator's atoms along `CHANNEL`, `ROW`, `COLUMN`, `PART` and `ACROSS`."""
        return *self.axes, self.across or (0, shape_of(operator).strips)


def borders(size: int, tile: int, run: int | None = None) -> Borders:
    """Borders of tiles of one size.

    Parameters
    ----------
    run : results of the innermost loop along the axis; tiles below it end with each run, larger ones are cut
        down to whole runs
    """
    inner = size if run is None else run
    tile = max(1, min(tile, size))
    if tile >= inner:
        return (*range(0, size, tile // inner * inner), size)
    runs = (range(start, start + inner, tile) for start in range(0, size, inner))
    return (*itertools.chain.from_iterable(runs), size)


def tiling(unit: Unit, size: AtomSize, batch: int) -> Tiling:
    """The tiling of a unit by sizes of its atoms."""
    operator = unit.layer.operator
    shape = shape_of(operator)
    cuts = [
        borders(shape.sizes[axis], tile, inner_run(operator, axis))
        for axis, tile in ((CHANNEL, size.outputs), (ROW, size.rows), (COLUMN, size.columns))
    ]
    return Tiling(borders(batch, size.samples), cuts[0], cuts[1], cuts[2], borders(shape.parts, size.inputs))


def atom_count(unit: Unit, size: AtomSize, batch: int) -> int:
    """How many atoms a unit has by that size, without reductions of partial sums."""
    cuts_of = tiling(unit, size, batch)
    return math.prod(len(cuts) - 1 for cuts in (cuts_of.samples, *cuts_of.axes))


def check_tilings(units: Sequence[Unit], tilings: Sequence[Tiling], batch: int) -> None:
    """Raise ``ValueError`` naming the unit and axis whose borders do not cover it in order."""
    if len(units) != len(tilings):
        raise ValueError(f"expected {len(units)} tilings, one per unit, got {len(tilings)}")
    for unit, cuts_of in zip(units, tilings, strict=True):
        operator: Operator = unit.layer.operator
        shape = shape_of(operator)
        sizes = {
            "samples": (batch, cuts_of.samples),
            "channels": (shape.sizes[CHANNEL], cuts_of.channels),
            "rows": (shape.sizes[ROW], cuts_of.rows),
            "columns": (shape.sizes[COLUMN], cuts_of.columns),
            "input channels": (shape.parts, cuts_of.parts),
            "columns of a window": (shape.strips, cuts_of.every(operator)[ACROSS]),
        }
        for what, (size, cuts) in sizes.items():
            rising = all(a < b for a, b in itertools.pairwise(cuts))
            if len(cuts) < 2 or cuts[0] != 0 or cuts[-1] != size or not rising:
                raise ValueError(f"{unit.name}: borders of {what} must rise from 0 to {size}, got {cuts}")
        begins, boxes, parts = cuts_of.begins, cuts_of.boxes, cuts_of.divisions
        counted = operator.is_mac and len(begins) == boxes
        if begins and not (counted and 0 <= min(begins) <= max(begins) < parts):
            raise ValueError(
                f"{unit.name}: begins: expected the first of {parts} parts of each of {boxes} sums"
            )
        for axis, cuts in (
            (CHANNEL, cuts_of.channels),
            (ROW, cuts_of.rows),
            (COLUMN, cuts_of.columns),
            (PART, cuts_of.parts),
        ):
            run = inner_run(operator, axis)
            for low, high in itertools.pairwise(cuts):
                if low // run != (high - 1) // run and (low % run or high % run):
                    raise ValueError(f"{unit.name}: an atom from {low} to {high} crosses a run of {run}")
