"""What the atoms of one layer cost and make; remembered."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.costs import AtomCosts, atom_costs
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.formulation.scheduling.tiled.trips import atom_shapes, weight_blocks
from tilewright.formulation.scheduling.tiled.widths import in_bytes
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.hardware.scheduling.tiled.machine import TileEngine
from tilewright.workloads.mapping.operator import Operator

SUM_BYTES = 4
"""Bytes of one unfinished sum."""


@dataclass(frozen=True, eq=False)
class LayerAtoms:
    """Per atom of a layer, the reductions of its sums included.

    Parameters
    ----------
    costs : on its engine
    results : bytes that it makes
    vector : whether the vector unit does it
    """

    costs: AtomCosts
    results: Int64s
    vector: Bools


def layer_atoms(operator: Operator, tiling: Tiling, slots: int, engine: TileEngine, bits: int) -> LayerAtoms:
    """The atoms of a layer.

    Parameters
    ----------
    slots : atoms per box of results, one more than parts of a sum where a reduction follows them
    bits : of one element of the finished result
    """
    key = (tiling, slots, engine, bits)
    return LAYERS.get(operator, key, lambda: _atoms(operator, tiling, slots, engine, bits))


def layer_weights(operator: Operator, tiling: Tiling) -> tuple[Int64s, Int64s]:
    """`weight_blocks` of a layer."""
    return WEIGHTS.get(operator, tiling, lambda: weight_blocks(operator, tiling))


LAYERS: Memo[LayerAtoms] = Memo(lambda value: 6 * len(value.results))
WEIGHTS: Memo[tuple[Int64s, Int64s]] = Memo(lambda value: len(value[0]) + len(value[1]))


def _atoms(operator: Operator, tiling: Tiling, slots: int, engine: TileEngine, bits: int) -> LayerAtoms:
    shapes = atom_shapes(operator, tiling)
    priced = atom_costs(engine, shapes)
    parts = tiling.divisions
    sides = [np.diff(np.array(cuts, dtype=np.int64)) for cuts in (tiling.samples, *tiling.axes[:3])]
    boxes = np.ones(1, dtype=np.int64)
    for side in sides:
        boxes = np.multiply.outer(boxes, side).ravel()
    count = math.prod(len(side) for side in sides)
    results = np.repeat(boxes[:, None], slots, axis=1) * SUM_BYTES
    results[:, -1] = in_bytes(boxes * bits)
    vector = np.full((count, slots), shapes.kind == "vector")
    at = np.tile(tiling.slots_of_parts(), (count // tiling.boxes, 1))
    grids = []
    for values in (priced.cycles, priced.operations, priced.buffer_bytes, priced.register_bytes):
        grid = np.zeros((count, slots), dtype=np.int64)
        np.put_along_axis(grid, at, values.reshape(count, parts), axis=1)
        grids.append(grid)
    own = []
    for energies in (priced.buffer_energy, priced.inside_energy):
        spread = np.zeros((count, slots), dtype=np.float64)
        if energies is not None:
            np.put_along_axis(spread, at, energies.reshape(count, parts), axis=1)
        own.append(spread.ravel())
    if slots > parts:
        vector[:, -1] = True
        grids[0][:, -1] = -(-boxes * parts // engine.vector_lanes) + engine.startup_cycles
        grids[1][:, -1] = boxes * parts
        grids[2][:, -1] = boxes * parts * SUM_BYTES
    costs = AtomCosts(grids[0].ravel(), grids[1].ravel(), grids[2].ravel(), grids[3].ravel(), *own)
    return LayerAtoms(costs, results.ravel(), vector.ravel())
