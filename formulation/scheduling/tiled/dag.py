"""The atomic DAG: atoms with their costs, the blocks of data between them, and who reads which.

A *block* is the unit in which data moves and stays: the whole result of an atom (block ``t`` is the result of
task ``t``), a part of a result that some atoms read (a halo), a block of weights, or a part of the network's
input.  Reads are exact in elements.  Where data is reshaped or transposed between layers, an atom depends on
all of the producer and reads its share of each result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.coordinates import ACROSS
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Bools, Floats, Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TileEngine

PartialSums = Literal["chain", "reduction"]

RESULT, REGION, WEIGHTS, INPUT = 0, 1, 2, 3
"""Kinds of blocks."""

KIND_NAMES = ("result", "part of a result", "weights", "input")


def outline(units: Sequence[Unit], tasks: int, reads: Int64s, engine: TileEngine | None) -> str:
    """How much a DAG is, in a line.

    Parameters
    ----------
    units : what was cut
    tasks : atoms of all units
    reads : blocks that the atoms of each unit read, together
    engine : whose buffer holds an atom
    """
    most = int(reads.argmax())
    where = "" if engine is None else f" in buffers of {engine.buffer_bytes:,} bytes"
    return (
        f"{tasks:,} atoms{where}, which read {int(reads.sum()):,} blocks, {int(reads[most]):,} of them for "
        f"{units[most].name}"
    )


@dataclass(frozen=True, eq=False)
class AtomicDag:
    """Atoms and blocks as arrays.

    Parameters
    ----------
    units, tilings, batch : what was cut, and how
    slots : per unit, atoms per box of results: 1, the number of partial sums, or one more (their reduction)
    base : per unit, its first task; one more entry at the end
    unit, cycles, operations : per task
    compute_energy, buffer_energy, register_energy : pJ per task inside its engine
    vector : per task, whether the vector unit does it
    is_output : per task, whether its result must end in DRAM
    block_bytes, block_parent, block_kind : per block; the parent is the task whose result it is (part of), or
        -1 for data that is in DRAM from the start
    read_starts, reads : blocks that task ``t`` reads: ``reads[read_starts[t] : read_starts[t + 1]]``
    engine : on which they have these costs
    """

    units: tuple[Unit, ...]
    tilings: tuple[Tiling, ...]
    batch: int
    slots: Int32s
    base: Int64s
    unit: Int32s
    cycles: Int64s
    operations: Int64s
    compute_energy: Floats
    buffer_energy: Floats
    register_energy: Floats
    vector: Bools
    is_output: Bools
    block_bytes: Int64s
    block_parent: Int32s
    block_kind: npt.NDArray[np.int8]
    read_starts: Int64s
    reads: Int32s
    engine: TileEngine | None = None

    @property
    def tasks(self) -> int:
        return len(self.unit)

    @property
    def blocks(self) -> int:
        return len(self.block_bytes)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all atoms."""
        return int(self.operations[~self.vector].sum())

    def reads_of(self, task: int) -> Int32s:
        """Blocks that a task reads."""
        return self.reads[self.read_starts[task] : self.read_starts[task + 1]]

    def outline(self) -> str:
        """How much it is, in a line."""
        return outline(self.units, self.tasks, np.diff(self.read_starts[self.base]), self.engine)

    @cached_property
    def energies(self) -> tuple[float, float, float]:
        """pJ of all tasks inside their engines: operations, registers, and buffers."""
        return (
            float(self.compute_energy.sum()),
            float(self.register_energy.sum()),
            float(self.buffer_energy.sum()),
        )

    @cached_property
    def needs(self) -> Int64s:
        """Bytes that must be in the buffer while a task runs: what it reads, and its result."""
        sums = np.concatenate([[0], np.cumsum(self.block_bytes[self.reads])])
        needs: Int64s = sums[self.read_starts[1:]] - sums[self.read_starts[:-1]]
        return needs + self.block_bytes[: self.tasks]

    @cached_property
    def edges(self) -> tuple[Int64s, Int32s]:
        """Producers of every task, as starts and tasks like ``reads`` (repeats where several parts
        are read)."""
        producer = self.block_parent[self.reads]
        made = producer >= 0
        counts = np.concatenate([[0], np.cumsum(made)])
        return counts[self.read_starts].astype(np.int64), producer[made]

    def box(self, task: int) -> tuple[tuple[int, int], ...]:
        """Ranges of samples, channels, rows and columns of a task's result, then of the partial sum: of input
        channels, or of rows of a window, whose columns are `strip`.

        The last one is (0, 0) for the reduction of independent parts.
        """
        unit = int(self.unit[task])
        cuts_of = self.tilings[unit]
        rest, slot = divmod(task - int(self.base[unit]), int(self.slots[unit]))
        spans: list[tuple[int, int]] = []
        for cuts in (cuts_of.columns, cuts_of.rows, cuts_of.channels, cuts_of.samples):
            rest, tile = divmod(rest, len(cuts) - 1)
            spans.append((cuts[tile], cuts[tile + 1]))
        at = slot // max(1, len(cuts_of.across) - 1)
        if cuts_of.begins:
            box = (task - int(self.base[unit])) // int(self.slots[unit]) % cuts_of.boxes
            at = (slot + cuts_of.begins[box]) % cuts_of.divisions
        part = (cuts_of.parts[at], cuts_of.parts[at + 1]) if slot < cuts_of.divisions else (0, 0)
        return (*reversed(spans), part)

    def strip(self, task: int) -> tuple[int, int]:
        """The range of columns of a pool's window that a task combines; (0, 0) for the reduction of parts."""
        unit = int(self.unit[task])
        cuts_of = self.tilings[unit]
        slot = (task - int(self.base[unit])) % int(self.slots[unit])
        if slot >= cuts_of.divisions:
            return 0, 0
        across = cuts_of.every(self.units[unit].layer.operator)[ACROSS]
        at = slot % (len(across) - 1)
        return across[at], across[at + 1]

    def task_name(self, task: int) -> str:
        """Such as ``conv1[n 0:1, c 0:16, h 0:28, w 0:28]``."""
        spans = self.box(task)
        text = ", ".join(f"{a} {low}:{high}" for a, (low, high) in zip("nchw", spans, strict=False))
        tiling = self.tilings[int(self.unit[task])]
        if tiling.divisions > 1:
            text += ", sum" if spans[4] == (0, 0) else f", part {spans[4][0]}:{spans[4][1]}"
            if tiling.across and spans[4] != (0, 0):
                low, high = self.strip(task)
                text += f" x {low}:{high}"
        return f"{self.units[int(self.unit[task])].name}[{text}]"

    def block_name(self, block: int) -> str:
        """Such as ``result of conv1[...]`` or ``weights #5120``."""
        parent = int(self.block_parent[block])
        kind = KIND_NAMES[int(self.block_kind[block])]
        return f"{kind} of {self.task_name(parent)}" if parent >= 0 else f"{kind} #{block}"
