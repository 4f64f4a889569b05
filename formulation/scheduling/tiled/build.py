"""Building the atomic DAG: per unit its atoms, costs and weights; per operand the reads, as
products of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.atoms import layer_atoms, layer_weights
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.costs import AtomCosts, energy
from tilewright.formulation.scheduling.tiled.counting_sort import counting_sort
from tilewright.formulation.scheduling.tiled.dag import (
    INPUT,
    REGION,
    RESULT,
    WEIGHTS,
    AtomicDag,
    PartialSums,
    outline,
)
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.overlap import sample_entries
from tilewright.formulation.scheduling.tiled.reading import crossings, from_outside, input_sizes, made_by
from tilewright.formulation.scheduling.tiled.sources import Source
from tilewright.formulation.scheduling.tiled.tiling import Tiling, check_tilings
from tilewright.formulation.scheduling.tiled.trips import tensor_tiles
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.formulation.scheduling.tiled.widths import in_bytes, result_bits, tensor_bits
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TileEngine
from tilewright.workloads.mapping.operator import Role, Tensor

READS = 2_500_000
"""Reads, for every second that is left, beyond which no plan is begun: it would not be complete."""


class _Builder:
    def __init__(
        self,
        units: Sequence[Unit],
        tilings: Sequence[Tiling],
        batch: int,
        engine: TileEngine,
        sums: PartialSums,
        limits: Limits | None,
    ) -> None:
        self.units, self.tilings, self.batch, self.engine, self.sums = units, tilings, batch, engine, sums
        self.limits = limits
        counts, slots = [], []
        for unit, cuts_of in zip(units, tilings, strict=True):
            parts = cuts_of.divisions
            chained = sums == "chain" and unit.layer.operator.is_mac
            slots.append(parts if parts == 1 or chained else parts + 1)
            if cuts_of.begins and not chained:
                raise ValueError(f"{unit.name}: only the parts of a chain may begin with any of them")
            counts.append(
                math.prod(len(cuts) - 1 for cuts in (cuts_of.samples, *cuts_of.axes[:3])) * slots[-1]
            )
        self.slots = np.array(slots, dtype=np.int32)
        self.at = [self._places(cuts_of) for cuts_of in tilings]
        self.base = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.tasks = int(self.base[-1])
        self.counts = np.zeros(len(units), dtype=np.int64)  # reads by unit
        self.readers: list[Int32s] = []
        self.read_blocks: list[Int32s] = []
        self.sizes: list[Int64s] = []
        self.parents: list[Int64s] = []
        self.kinds: list[tuple[int, int]] = []
        self.blocks = self.tasks
        self.inputs: dict[tuple[int | str, tuple[int, ...], int], Source] = {}
        self.sources = [
            Source((cuts_of.samples, *cuts_of.axes[:3]), int(base), int(slot), bits)
            for cuts_of, base, slot, bits in zip(
                tilings, self.base, self.slots, result_bits(units, engine), strict=False
            )
        ]

    @staticmethod
    def _places(cuts_of: Tiling) -> Int32s | None:
        """Per box and part of a unit's sums, counted from its first task, the task that makes the part;
        ``None`` where these are the same.
        """
        if not cuts_of.begins:
            return None
        slots = cuts_of.slots_of_parts()
        place = np.tile(slots, (len(cuts_of.samples) - 1, 1))
        place += slots.shape[1] * np.arange(len(place))[:, None]
        return place.ravel().astype(np.int32)

    def _reader(self, index: int, local: Int64s, late: bool = False) -> Int64s:
        """The tasks of a unit that read what its parts need, counted from its first one.

        Parameters
        ----------
        local : numbers of boxes and parts
        late : whether only the last of a chain reads, whatever its part
        """
        at = self.at[index]
        return local if late or at is None else at[local].astype(np.int64)

    def add_blocks(self, kind: int, sizes: Int64s, parents: Int64s) -> int:
        """New blocks at the end; the number of the first."""
        first = self.blocks
        self.sizes.append(sizes)
        self.parents.append(parents)
        self.kinds.append((kind, len(sizes)))
        self.blocks += len(sizes)
        return first

    def add_reads(self, index: int, readers: Int64s, blocks: Int64s) -> None:
        """Atoms of a unit that read blocks, pair by pair."""
        self.counts[index] += len(readers)
        self.readers.append(readers.astype(np.int32))
        self.read_blocks.append(blocks.astype(np.int32))

    def _outline(self) -> str:
        return outline(self.units, self.tasks, self.counts, self.engine)

    def build(self) -> AtomicDag:
        results, columns = self._atoms()
        for index, unit in enumerate(self.units):
            check(self.limits, self._outline)
            self._weights(index, unit)
            self._partial_sums(index)
            for read in unit.reads:
                self._read(index, read)
        self._afford()
        for source in [*self.sources, *self.inputs.values()]:
            check(self.limits, self._outline)
            for readers, blocks in source.reads(self.add_blocks):
                self.readers.append(readers)
                self.read_blocks.append(blocks)
        check(self.limits, self._outline)
        none = np.zeros(0, dtype=np.int32)
        by, blocks = np.concatenate([none, *self.readers]), np.concatenate([none, *self.read_blocks])
        by, blocks = self._once(by, blocks)
        starts, reads = counting_sort(by, blocks, self.tasks)
        kinds = np.concatenate(
            [np.full(self.tasks, RESULT), *(np.full(count, kind) for kind, count in self.kinds)]
        )
        return AtomicDag(
            units=tuple(self.units),
            tilings=tuple(self.tilings),
            batch=self.batch,
            slots=self.slots,
            base=self.base,
            block_bytes=np.concatenate([results, *self.sizes]).astype(np.int64),
            block_parent=np.concatenate([np.arange(self.tasks), *self.parents]).astype(np.int32),
            block_kind=kinds.astype(np.int8),
            read_starts=starts,
            reads=reads,
            engine=self.engine,
            **columns,
        )

    def _once(self, by: Int32s, blocks: Int32s) -> tuple[Int32s, Int32s]:
        """Each pair of a reader and a block once, where a unit reads one source as several operands.

        Otherwise what ``x * sigmoid(x)`` reads would need twice the room, and count twice in bounds.

        Parameters
        ----------
        by, blocks : readers and what they read
        """
        several = np.zeros(len(self.units), dtype=np.bool_)
        for index, unit in enumerate(self.units):
            several[index] = len({read.source for read in unit.reads}) < len(unit.reads)
        if not several.any():
            return by, blocks
        rows = np.flatnonzero(np.repeat(several, np.diff(self.base))[by])
        _, first = np.unique(by[rows].astype(np.int64) * self.blocks + blocks[rows], return_index=True)
        kept = np.ones(len(by), dtype=np.bool_)
        kept[rows] = False
        kept[rows[first]] = True
        return by[kept], blocks[kept]

    def _atoms(self) -> tuple[Int64s, dict[str, Any]]:
        """Bytes of all results, and the columns of the tasks."""
        unit = np.repeat(np.arange(len(self.units), dtype=np.int32), np.diff(self.base))
        made = [
            layer_atoms(part.layer.operator, tiles, int(slots), self.engine, source.bits)
            for part, tiles, slots, source in zip(
                self.units, self.tilings, self.slots, self.sources, strict=True
            )
        ]
        results = _joined([part.results for part in made])
        vector = np.concatenate([part.vector for part in made])
        cost = AtomCosts(
            _joined([part.costs.cycles for part in made]),
            _joined([part.costs.operations for part in made]),
            _joined([part.costs.buffer_bytes for part in made]),
            _joined([part.costs.register_bytes for part in made]),
            np.concatenate([part.costs.buffer_energy for part in made]),
            np.concatenate([part.costs.inside_energy for part in made]),
        )
        output = np.zeros(self.tasks, dtype=np.bool_)
        for i, part in enumerate(self.units):
            if part.is_output:
                slots = int(self.slots[i])
                output[int(self.base[i]) + slots - 1 : int(self.base[i + 1]) : slots] = True
        compute, buffer, registers = energy(self.engine, cost, vector)
        # results are written to the buffer once; what arrives from elsewhere is written there by its transfer
        buffer = buffer + results * self.engine.buffer_write_energy
        return results, {
            "unit": unit,
            "cycles": cost.cycles,
            "operations": cost.operations,
            "compute_energy": compute,
            "buffer_energy": buffer,
            "register_energy": registers,
            "vector": vector,
            "is_output": output,
        }

    def _weights(self, index: int, unit: Unit) -> None:
        if not unit.layer.stored_weights:
            return
        cuts = self.tilings[index]
        elements, block = layer_weights(unit.layer.operator, cuts)
        if not len(elements):
            return
        bits = next(t for t in unit.layer.operator.inputs if t.role is Role.WEIGHT)
        sizes = in_bytes(elements * tensor_bits(bits, self.engine))
        first = self.add_blocks(WEIGHTS, sizes, np.full(len(elements), -1, dtype=np.int64))
        slots, parts = int(self.slots[index]), cuts.divisions
        local = np.arange(block.size, dtype=np.int64)
        task = local // parts * slots + local % parts
        per_sample = block.size // parts * slots
        for sample in range(len(cuts.samples) - 1):
            reader = self._reader(index, sample * per_sample + task)
            self.add_reads(index, self.base[index] + reader, first + block)

    def _partial_sums(self, index: int) -> None:
        """Part p reads the sum of the parts before it, or the reduction reads all of them."""
        slots, parts = int(self.slots[index]), self.tilings[index].divisions
        if parts == 1:
            return
        tasks = np.arange(self.base[index], self.base[index + 1]).reshape(-1, slots)
        if slots == parts:
            self.add_reads(index, tasks[:, 1:].ravel(), tasks[:, :-1].ravel())
        else:
            self.add_reads(index, np.repeat(tasks[:, -1], parts), tasks[:, :-1].ravel())

    def _read(self, index: int, read: Read) -> None:
        operator = read.layer.operator
        tensor = operator.tensor(read.operand)
        if read.producer is None:
            known = input_sizes(operator, read.operand, read.link)
            source = self._source(read, known)
            origin = from_outside(known, read.link, source.cuts)
        else:
            source = self.sources[read.producer]
            origin = made_by(self.units[read.producer], read.link, source.cuts)
        entries = crossings(
            operator, read.operand, self.tilings[index], int(self.slots[index]), read.late, origin
        )
        if entries is not None:
            at = None if read.late else self.at[index]
            self.counts[index] += source.note(int(self.base[index]), entries, at)
        elif read.producer is not None:
            self._read_all(index, read, tensor)
        else:
            self._read_unmapped_input(index, read, tensor)

    def _source(self, read: Read, sizes: Sequence[int]) -> Source:
        """An input of the network."""
        bits = tensor_bits(read.layer.operator.tensor(read.operand), self.engine)
        key = (read.source, tuple(sizes), bits)
        if key not in self.inputs:
            channels, rows, columns = ((0, size) for size in sizes)
            cuts = (tuple(range(self.batch + 1)), channels, rows, columns)
            self.inputs[key] = Source(cuts, -1, 1, bits)
        return self.inputs[key]

    def _operand_share(self, index: int, read: Read, tensor: Tensor) -> tuple[Int64s, Int64s, int]:
        """Per atom of one sample range: which share of the operand it reads (a number), and its elements."""
        operator = read.layer.operator
        cuts = self.tilings[index]
        shape, tiles = shape_of(operator), cuts.every(operator)
        if read.late:
            tiles = *tiles[:3], (0, shape.parts), (0, shape.strips)
        return tensor_tiles(operator, tensor, tiles)

    def _read_all(self, index: int, read: Read, tensor: Tensor) -> None:
        """Behind movement that mixes coordinates: every atom reads its share of every result of the same
        samples, and no more of them all than the operand has.
        """
        assert read.producer is not None
        share, number, total = self._operand_share(index, read, tensor)
        source = self.sources[read.producer]
        boxes = np.ones(1, dtype=np.int64)
        for cuts in source.cuts[1:]:
            boxes = np.multiply.outer(boxes, np.diff(np.array(cuts, dtype=np.int64))).ravel()
        total = max(total, int(boxes.sum()))
        slots = int(self.slots[index])
        parts = 1 if read.late else self.tilings[index].divisions
        local = np.arange(number.size, dtype=np.int64)
        reader = local // parts * slots + (slots - 1 if read.late else local % parts)
        per_sample = number.size // parts * slots
        met = sample_entries(self.tilings[index].samples, 1, source.cuts[0])
        more = len(met.count) * len(boxes) * number.size
        name = self.units[index].name
        self._afford(more, f"; {name} reads {more:,} parts of results, as coordinates mix on the way to it")
        for mine, theirs, count in zip(met.consumer, met.producer, met.count, strict=True):
            elements = -(-np.multiply.outer(boxes * int(count), share) // total)
            size = in_bytes(elements * source.bits)
            piece = int(theirs) * len(boxes) + np.arange(len(boxes))
            task = source.task + piece * source.slots + source.slots - 1
            first = self.add_blocks(REGION, size.ravel(), np.repeat(task, len(share)))
            block = first + np.add.outer(np.arange(len(boxes)) * len(share), number)
            mine_all = self.base[index] + self._reader(index, int(mine) * per_sample + reader, read.late)
            self.add_reads(index, np.tile(mine_all, len(boxes)), block.ravel())

    def _afford(self, more: int = 0, reason: str = "") -> None:
        """Refuse reads, and some more, that take longer than the time that is left."""
        left = None if self.limits is None else self.limits.remaining
        if left is not None and more + int(self.counts.sum()) > READS * left:
            raise LimitReachedError(
                f"{self._outline()}{reason}: too many for a plan in the time that was left"
            )

    def _read_unmapped_input(self, index: int, read: Read, tensor: Tensor) -> None:
        """An operand from DRAM whose coordinates mix: one block per share of it and sample range."""
        share, number, _ = self._operand_share(index, read, tensor)
        cuts = self.tilings[index]
        slots = int(self.slots[index])
        parts = 1 if read.late else cuts.divisions
        local = np.arange(number.size, dtype=np.int64)
        reader = local // parts * slots + (slots - 1 if read.late else local % parts)
        per_sample = number.size // parts * slots
        for sample, count in enumerate(np.diff(np.array(cuts.samples))):
            size = in_bytes(share * int(count) * tensor_bits(tensor, self.engine))
            first = self.add_blocks(INPUT, size, np.full(len(share), -1, dtype=np.int64))
            local = self._reader(index, sample * per_sample + reader, read.late)
            self.add_reads(index, self.base[index] + local, first + number)


def _joined(arrays: list[Int64s]) -> Int64s:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)


def build_dag(
    units: Sequence[Unit],
    tilings: Sequence[Tiling],
    engine: TileEngine,
    *,
    batch: int = 1,
    partial_sums: PartialSums = "chain",
    limits: Limits | None = None,
) -> AtomicDag:
    """The atomic DAG of units cut by tilings.

    Parameters
    ----------
    partial_sums : where the sum over input channels is divided: ``chain`` (each part adds to the one before)
        or ``reduction`` (independent parts, then one atom adds them up), as it always is where a window of
        a pool is divided; unfinished sums have four bytes

    Raises
    ------
    ValueError : for tilings that do not cover the units
    LimitReachedError : where limits strike on the way
    """
    check_tilings(units, tilings, batch)
    return _Builder(units, tilings, batch, engine, partial_sums, limits).build()
