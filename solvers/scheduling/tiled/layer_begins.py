"""Cycles before which no atom of a layer begins, over all sizes of atoms, and what must follow them.

Before a layer begins, all engines have done its `barriers`, of one sample; and a layer of which it needs
every channel, be it at one pixel, has read all its weights (`channels_before`), which have entered engines
from DRAM in earlier steps.  All work of the layers that begin at cycle ``a`` or later follows ``a``; of their
weights no more than fit all buffers are there.  Outputs of layers that finish no result before ``a`` leave
after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import COLUMN, ROW, shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.ancestors import fetch_rate
from tilewright.solvers.scheduling.tiled.barriers import barriers, channels_before
from tilewright.workloads.mapping.operator import Operator, Role

_SLACK = 1e-6
"""Part of a cycle that the evaluator rounds down, too."""


@dataclass(frozen=True, slots=True)
class LayerLoads:
    """What the layers of a network take, per unit.

    Parameters
    ----------
    first : cycles of one sample, which no division undercuts in sum
    work : cycles of all samples
    weights : bytes that are read from DRAM
    leaving : bytes of results that end in DRAM
    """

    first: Int64s
    work: Int64s
    weights: Int64s
    leaving: Int64s


def layer_loads(whole: AtomicDag, first: list[int], work: list[int]) -> LayerLoads:
    """The loads of a DAG of whole layers.

    Parameters
    ----------
    whole : of `whole_layers`
    first, work : cycles per unit of one sample and of all
    """
    leaving = np.where(whole.is_output, whole.block_bytes[: whole.tasks], 0)
    return LayerLoads(
        np.array(first, dtype=np.int64),
        np.array(work, dtype=np.int64),
        stored_bytes(whole),
        np.bincount(whole.unit, leaving, len(whole.units)).astype(np.int64),
    )


def stored_bytes(whole: AtomicDag) -> Int64s:
    """Bytes of stored weights per unit of a DAG of whole layers."""
    sizes = np.zeros(len(whole.units), dtype=np.int64)
    for index in range(len(whole.units)):
        blocks = whole.reads_of(index)
        sizes[index] = whole.block_bytes[blocks[whole.block_kind[blocks] == WEIGHTS]].sum()
    return sizes


def leave_rate(machine: TiledMachine) -> float:
    """Bytes per cycle that can leave engines for DRAM."""
    return min(fetch_rate(machine), machine.port_rate * machine.engines)


def layer_begins(
    whole: AtomicDag, machine: TiledMachine, loads: LayerLoads, *, finished: bool = False
) -> Floats:
    """Per unit, cycles before which none of its atoms begins.

    Parameters
    ----------
    whole : of `whole_layers`
    finished : ask for atoms that finish results, rather than for any part of a sum
    """
    shared = np.array([_pixels_share(unit.layer.operator) for unit in whole.units])
    weights = np.where(shared, loads.weights, 0)
    done = [loads.first[list(units)].sum() for units in barriers(whole.units, finished=finished)]
    come = [weights[list(units)].sum() for units in channels_before(whole.units, finished=finished)]
    return _begins(machine, np.array(done, dtype=np.int64), np.array(come, dtype=np.int64))


def following(whole: AtomicDag, machine: TiledMachine, loads: LayerLoads, least: int) -> tuple[int, int]:
    """Cycles of layers' work behind their begin, and of their traffic; 0 where neither exceeds ``least``.

    Parameters
    ----------
    whole : of `whole_layers`
    """
    # as if all layers had to be done before each, which is quick to tell, begins are no earlier
    latest = _begins(machine, *(np.cumsum(sizes) - sizes for sizes in (loads.first, loads.weights)))
    if max(_followed(machine, loads, latest, latest)) <= least:
        return 0, 0
    begins, ends = (layer_begins(whole, machine, loads, finished=finished) for finished in (False, True))
    return _followed(machine, loads, begins, ends)


def _begins(machine: TiledMachine, done: Int64s, come: Int64s) -> Floats:
    begins: Floats = np.maximum(-(-done // machine.engines), come / leave_rate(machine))
    return begins


def _followed(machine: TiledMachine, loads: LayerLoads, begins: Floats, ends: Floats) -> tuple[int, int]:
    """The largest sum of a begin and the work behind it, and of one and the traffic behind it.

    Parameters
    ----------
    begins, ends : of any atoms of the units, and of those that finish results
    """
    work = -(-_behind(begins, loads.work) // machine.engines)
    fetched = np.maximum(0, _behind(begins, loads.weights) - machine.on_chip_bytes) / fetch_rate(machine)
    leaving = _behind(ends, loads.leaving) / leave_rate(machine)
    staged = max(float((begins + fetched).max()), float((ends + leaving).max()))
    return math.ceil(float((begins + work).max()) - _SLACK), math.ceil(staged - _SLACK)


def _behind(begins: Floats, sizes: Int64s) -> Int64s:
    """Per unit, the sum over all that begin no earlier."""
    order = np.argsort(-begins, kind="stable")
    sums = np.cumsum(sizes[order])
    # of units that begin together, each has the sum up to the last of them
    last = np.searchsorted(-begins[order], -begins, side="right") - 1
    behind: Int64s = sums[last]
    return behind


def _pixels_share(operator: Operator) -> bool:
    """Whether no weight belongs to some rows or columns of results alone."""
    shape = shape_of(operator)
    pixels = {*shape.loops[ROW], *shape.loops[COLUMN]}
    weights = (tensor for tensor in operator.inputs if tensor.role is Role.WEIGHT)
    dims = {term.dim for tensor in weights for axis in tensor.axes for term in axis.terms}
    return not any(shape.scattered) and dims.isdisjoint(pixels)
