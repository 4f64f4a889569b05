"""The execution model of dMazeRunner played out pass by pass.

One *SPM pass* after another, and inside it one *RF pass* after another: which operand moves when, what that
takes and what it costs.  Nothing is shared with the formulation but operator, engine and mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

Loop = tuple[str, int]


@dataclass(frozen=True)
class Passes:
    """Totals of the run: energy before rounding by component, engine cycles, and passes."""

    components: dict[str, Fraction]
    cycles: int
    spm_passes: int

    @property
    def energy(self) -> int:
        """Whole pJ, halves to even."""
        return round(sum(self.components.values()))


def odometer(loops: Sequence[Loop]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Indices of every step, and the outermost loop that advanced (-1 at the first step)."""
    before: tuple[int, ...] | None = None
    for now in product(*(range(trips) for _, trips in loops)):
        yield now, -1 if before is None else next(i for i, n in enumerate(now) if n != before[i])
        before = now


def innermost(loops: Sequence[Loop], tensor: Tensor) -> int:
    """Position of the innermost loop that moves a tensor; -1 where none does."""
    return max((i for i, (dim, _) in enumerate(loops) if dim in tensor.dims), default=-1)


class _Run:
    def __init__(self, operator: Operator, engine: Engine, mapping: Mapping) -> None:
        self.operator, self.engine = operator, engine
        self.dram: list[Loop] = []
        self.spm: list[Loop] = []
        self.spread = dict.fromkeys(operator.bounds, 1)
        self.rf: list[Loop] = []
        tile = dict(operator.bounds)
        level = 0
        self.tiles = {0: dict(tile)}
        for node in mapping.nodes:
            if isinstance(node, Storage):
                level = [memory.name for memory in engine.levels].index(node.level)
                self.tiles[level] = dict(tile)
                continue
            trips = tile[node.dim] // node.tile
            tile[node.dim] = node.tile
            if isinstance(node, Spatial):
                self.spread[node.dim] *= trips
            else:
                (self.dram, self.spm, self.rf)[level].append((node.dim, trips))
        self.array = {dim: size * self.spread[dim] for dim, size in self.tiles[2].items()}
        self.output = operator.output
        self.compute = math.prod(trips for _, trips in self.rf)
        self.partners = math.prod(n for dim, n in self.spread.items() if dim not in self.output.dims) - 1
        groups = math.prod(n for dim, n in self.spread.items() if dim in self.output.dims)
        self.sums = self.output.footprint(self.tiles[2]) * groups * self.partners
        self.net = {tensor.name: tensor.footprint(self.array) for tensor in operator.tensors}
        self.energy = dict.fromkeys(("MAC", "RF", "network", "SPM", "DRAM"), Fraction(0))

    def dma(self, tensor: Tensor) -> int:
        """Engine cycles to move one SPM tile: one invocation per contiguous run of elements."""
        settings = self.engine.dma
        assert settings is not None
        extents = [axis.extent(self.tiles[1]) for axis in tensor.axes]
        burst, count, contiguous = 1, 1, True
        for axis, extent in reversed(list(zip(tensor.axes, extents, strict=True))):
            if contiguous:
                burst *= extent
            else:
                count *= extent
            contiguous = contiguous and extent == axis.size
        cost = settings.startup + settings.per_byte * burst * self.engine.element_bytes
        return count * math.ceil(cost * settings.clock_ratio)

    def kept(self) -> Tensor | None:
        """The tensor that stays in the scratch-pad while the innermost DRAM loop runs."""
        if not self.dram:
            return None
        return next((t for t in self.operator.tensors if self.dram[-1][0] not in t.dims), None)

    def play(self) -> Passes:
        """All passes of the layer."""
        kept = self.kept()
        through = kept if kept is not None and innermost(self.spm, kept) < 0 else None
        rounds_end = 1
        if kept is not None:
            run = self.dram[innermost(self.dram, kept) + 1 :]
            rounds_end = math.prod(trips for _, trips in run)
        touched: set[tuple[int, ...]] = set()
        cycles = passes = 0
        for now, advanced in odometer(self.dram):
            arrives = {t.name: advanced <= innermost(self.dram, t) for t in self.operator.tensors}
            for tensor in self.operator.tensors:
                if arrives[tensor.name]:
                    self._fill(tensor, now, touched)
            work = self._pass(through, arrives)
            transfer = 0
            for tensor in self.operator.tensors:
                if tensor is not kept:
                    transfer += self.dma(tensor) * (2 if tensor.is_output else 1)
            if kept is not None:
                first = passes % rounds_end == 0
                last = passes % rounds_end == rounds_end - 1
                if first and through is not None:
                    others = [self.net[t.name] for t in self.operator.tensors if t is not kept]
                    work += max(0, self.net[kept.name] - max(others, default=0))
                if last and through is self.output:
                    work += self.compute + self.sums
                if last or (first and kept.is_output):
                    transfer += self.dma(kept)
            cycles += max(work, transfer)
            passes += 1
        iterations = self.operator.iterations
        self.energy["MAC"] += self.engine.mac_energy * iterations
        self.energy["RF"] += self.engine.levels[2].read_energy * iterations * (len(self.operator.tensors) + 1)
        return Passes(self.energy, cycles, passes)

    def _fill(self, tensor: Tensor, now: tuple[int, ...], touched: set[tuple[int, ...]]) -> None:
        """A tile moves between DRAM and the scratch-pad; partial sums come back but for the first time."""
        size = tensor.footprint(self.tiles[1]) * self.engine.levels[0].read_energy
        self.energy["DRAM"] += size
        if tensor.is_output:
            place = tuple(i for i, (dim, _) in zip(now, self.dram, strict=True) if dim in tensor.dims)
            if place in touched:
                self.energy["DRAM"] += size
            touched.add(place)

    def _pass(self, through: Tensor | None, arrives: dict[str, bool]) -> int:
        """One SPM pass; ``through`` stays in the registers from pass to pass."""
        cycles = 0
        every = self.output is not through and (not self.spm or self.spm[-1][0] in self.output.dims)
        for _, advanced in odometer(self.spm):
            moves = []
            for tensor in self.operator.tensors:
                if tensor is through:
                    if advanced < 0 and arrives[tensor.name]:
                        self._move(tensor, again=1)
                elif advanced <= innermost(self.spm, tensor):
                    moves.append(tensor)
                    self._move(tensor, again=2 if tensor.is_output else 1)
            nets = max((self.net[tensor.name] for tensor in moves), default=0)
            if every:  # nothing overlaps
                cycles += nets + self.compute + self.sums
            else:
                cycles += max(nets, self.compute)
                if self.output in moves:
                    cycles += self.compute + self.sums
        return cycles

    def _move(self, tensor: Tensor, again: int) -> None:
        """A tile moves between the scratch-pad and the array."""
        spm, rf = self.engine.levels[1], self.engine.levels[2]
        assert spm.fanout is not None
        receivers = math.prod(
            n for dim, n in self.spread.items() if dim in tensor.dims or not tensor.is_output
        )
        hops = again * tensor.footprint(self.tiles[2]) * receivers
        self.energy["network"] += hops * spm.fanout.energy
        self.energy["SPM"] += again * self.net[tensor.name] * spm.read_energy
        if tensor.is_output:
            self.energy["RF"] += 3 * self.sums * rf.read_energy
            self.energy["network"] += self.sums * spm.fanout.energy
            self.energy["MAC"] += self.sums * self.engine.mac_energy


def play(operator: Operator, engine: Engine, mapping: Mapping) -> Passes:
    """Play an even mapping with perfect factors."""
    return _Run(operator, engine, mapping).play()
