"""What an atom costs on an engine: cycles, and accesses to buffer and registers, in bulk.

With ``o`` output channels, ``i`` input channels, ``h x w`` results, ``f`` filter taps, ``g`` groups and ``n``
samples, on an array of ``X`` rows and ``Y`` columns (`ceil` written ``/^``):

========= ============================== ======================== =====================================
dataflow  cycles                         weights read (buffer)    inputs read (buffer)
========= ============================== ======================== =====================================
kc        n g f h w (i /^ X)(o /^ Y)     g f i o                  n g f h w i (o /^ Y)
yx        n g f i o (h /^ X)(w /^ Y)     n g f i o (h/^X)(w/^Y)   n g i (o)(input positions)
pairs     least over six pairs of dims   g f i o                  n g f h w i (o /^ lanes)
========= ============================== ======================== =====================================

A tile from a machine file has the costs of each atom's mapping instead, see `own_costs`.

Depthwise layers (one input channel per group) spread the channels over the columns, one row each,
under ``kc`` and ``pairs``: ``n f h w (channels /^ Y)``.  Element-wise and pooling layers take
``iterations /^ lanes`` on the vector unit.  The first fetch of operands is not in these cycles:
transfers of the plan account for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from tilewright.formulation.scheduling.tiled.own_costs import LeastPrices, TaskShape, Window, task_costs
from tilewright.formulation.scheduling.tiled.widths import Bits
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.hardware.scheduling.tiled.machine import TileEngine


@dataclass(frozen=True, eq=False)
class AtomShapes:
    """Loops of atoms that share a kind, one entry per atom.

    Parameters
    ----------
    kind : ``mac``, ``depthwise`` or ``vector``
    samples, groups, outputs, inputs, rows, columns, taps : trips of the loops; outputs and inputs per group
    input_positions : rows x columns of the input that an atom touches
    window : taps, strides and dilations, where the taps are those of a window
    bits : of elements, where the layer states any
    """

    kind: str
    samples: Int64s
    groups: Int64s
    outputs: Int64s
    inputs: Int64s
    rows: Int64s
    columns: Int64s
    taps: Int64s
    input_positions: Int64s
    window: Window | None = field(default=None, kw_only=True)
    bits: Bits | None = field(default=None, kw_only=True)

    def tasks(self) -> list[TaskShape]:
        """Each atom as the mapping side has it; taps of no window are those of a row."""
        s, window = self, self.window
        trips = np.broadcast_arrays(s.samples, s.groups, s.outputs, s.inputs, s.rows, s.columns, s.taps)
        columns = [column.tolist() for column in trips]
        own = () if window is None else (window,)
        by_taps = {r * c: (r, c, *moves) for r, c, *moves in own}
        return [
            TaskShape.of((*trips, *by_taps.get(taps, (taps, 1, 1, 1, 1, 1))), self.bits)
            for *trips, taps in zip(*columns, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class AtomCosts:
    """Per atom: cycles, operations, and bytes read from the engine's buffer and moved at the registers.

    Parameters
    ----------
    buffer_energy, inside_energy : of tiles from machine files, pJ at the buffer and inside of it, to which
        bytes add nothing; ``None`` of others
    """

    cycles: Int64s
    operations: Int64s
    buffer_bytes: Int64s
    register_bytes: Int64s
    buffer_energy: Floats | None = None
    inside_energy: Floats | None = None


def _up(a: Int64s, b: int) -> Int64s:
    return -(-a // b)


def atom_costs(engine: TileEngine, shapes: AtomShapes) -> AtomCosts:
    """Costs of atoms on an engine, see the module's table."""
    s = shapes
    results = s.samples * s.groups * s.outputs * s.rows * s.columns
    operations = results * s.inputs * s.taps
    stated = s.bits or Bits()
    of_inputs, of_weights = (bits or 8 * engine.element_bytes for bits in (stated.inputs, stated.weights))
    if s.kind == "vector":
        cycles = _up(operations, engine.vector_lanes)
        buffer = _up(operations * of_inputs, 8)
        registers = np.zeros_like(operations)
        return AtomCosts(cycles + engine.startup_cycles, operations, buffer, registers)
    if engine.own is not None:
        assert engine.prices is not None, "a tile from a machine file has no costs without mappings"
        cycles, at_buffer, inside = task_costs(engine.own, engine.prices, s.tasks())
        none = np.zeros_like(operations)
        return AtomCosts(cycles + engine.startup_cycles, operations, none, none, at_buffer, inside)
    weights = s.groups * s.taps * s.inputs * s.outputs
    fetched = s.samples * s.groups * s.taps * s.rows * s.columns * s.inputs
    if engine.dataflow == "yx":
        blocks = _up(s.rows, engine.rows) * _up(s.columns, engine.columns)
        cycles = s.samples * weights * blocks
        weights = cycles
        fetched = s.samples * s.groups * s.inputs * s.outputs * s.input_positions
        sums = operations
    elif s.kind == "depthwise":
        channels = _up(s.groups * s.outputs, engine.columns * engine.lanes)
        cycles = s.samples * s.taps * s.rows * s.columns * channels
        fetched = fetched * s.outputs
        sums = operations
    elif engine.dataflow == "kc":
        passes = _up(s.outputs, engine.columns)
        cycles = s.samples * s.groups * s.taps * s.rows * s.columns * _up(s.inputs, engine.rows) * passes
        fetched = fetched * passes
        sums = results * s.taps * _up(s.inputs, engine.rows)
    else:
        cycles = _pair_cycles(engine, s)
        fetched = fetched * _up(s.outputs, engine.lanes)
        sums = results * s.taps * _up(s.inputs, engine.lanes)
    # at the registers: a weight and an input read per operation, a sum of four bytes read and written
    registers = _up((of_inputs + of_weights) * operations, 8) + 8 * sums
    buffer = _up(weights * of_weights + fetched * of_inputs, 8)
    return AtomCosts(cycles + engine.startup_cycles, operations, buffer, registers)


def _pair_cycles(engine: TileEngine, s: AtomShapes) -> Int64s:
    """SET's tile: channels through the lanes, the rest of two dimensions over the groups of lanes."""
    trips = {
        "C": _up(s.inputs, engine.lanes),
        "K": _up(s.outputs, engine.lanes),
        "B": s.samples,
        "H": s.rows,
        "W": s.columns,
    }
    best: Int64s | None = None
    for pair in ("CK", "CB", "BK", "CW", "HK", "HW"):
        for first, second in permutations(pair):
            cycles = s.taps * s.groups
            for name, count in trips.items():
                over = engine.rows if name == first else engine.columns if name == second else 1
                cycles = cycles * _up(count, over)
            best = cycles if best is None else np.minimum(best, cycles)
    assert best is not None
    return best


def least_cycles(engine: TileEngine, shapes: AtomShapes) -> Int64s:
    """Lower bound on the cycles of these whole layers over all divisions into atoms.

    Rounding up is subadditive, so atoms of any sizes take together at least what one atom without start-up
    does.  Under ``pairs`` atoms may choose different pairs; there the groups of lanes count as fully used,
    and so do all PEs of a tile from a machine file.
    """
    if engine.own is not None:
        engine = replace(engine, prices=LeastPrices())
    if engine.dataflow == "pairs" and shapes.kind == "mac":
        s = shapes
        channels = _up(s.inputs, engine.lanes) * _up(s.outputs, engine.lanes)
        work = s.samples * s.groups * s.taps * s.rows * s.columns * channels
        return _up(work, engine.rows * engine.columns)
    return atom_costs(engine, shapes).cycles - engine.startup_cycles


def energy(engine: TileEngine, costs: AtomCosts, vector: Bools) -> tuple[Floats, Floats, Floats]:
    """pJ per atom of operations, of the buffer's reads by the array, and of registers."""
    per_operation = np.where(vector, engine.vector_energy, engine.mac_energy)
    compute: Floats = costs.operations.astype(np.float64) * per_operation
    buffer: Floats = costs.buffer_bytes.astype(np.float64) * engine.buffer_read_energy
    registers: Floats = costs.register_bytes.astype(np.float64) * engine.register_energy
    if costs.buffer_energy is not None and costs.inside_energy is not None:
        buffer, registers = buffer + costs.buffer_energy, registers + costs.inside_energy
    return compute, buffer, registers
