"""Best mappings of one layer under one dataflow for many sizes of the machine at once.

A mapping's energy, compute steps and traffic do not depend on the size of the PE array or on the bandwidth;
they decide only whether it fits and how long its transfers take.  So the space is walked through once, with
the cost model's expressions read as arrays, and the best mapping is kept per use of the array.  Every point
of a grid then takes the best of what fits it.  This is plain enumeration: what it returns is optimal in the
space that it walks through (``docs/herald.md`` says which one that is).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product as cartesian
from math import prod

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, BatchReader
from tilewright.formulation.mapping.cost.base import Statement
from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import IMPERFECT, LayerProblem, layer_problem
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Floats, Indices, Int64s
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.styles import MEMORY, DataflowStyle
from tilewright.workloads.mapping.operator import Operator, Role

METRICS = ("cycles", "energy", "edp")
_CHUNK = 1 << 17


@dataclass(frozen=True, slots=True)
class MachineSize:
    """A size of the machine: PEs along the two axes of the array, and bytes per cycle."""

    array: tuple[int, int]
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class BestMapping:
    """The best mapping at one machine size by one metric.

    Parameters
    ----------
    energy : pJ
    cycles : engine cycles, without the first fetch from DRAM
    memory, weights : bytes that its tiles, and its weights' tile alone, take in the global memory
    """

    energy: Fraction
    cycles: int
    memory: int
    weights: int
    mapping: Mapping


@dataclass(frozen=True, slots=True)
class _Leader:
    """The best candidate of one use of the array."""

    key: tuple[float, float, float]
    energy: float
    cycles: float
    memory: float
    weights: float
    rows: tuple[int, ...]
    selectors: tuple[int, ...]


def best_by_size(
    operator: Operator,
    flow: DataflowStyle,
    memory: int,
    points: Sequence[MachineSize],
    metrics: Sequence[str] = METRICS,
) -> dict[tuple[MachineSize, str], BestMapping]:
    """The best mapping at every machine size by every metric; sizes where nothing fits are left out.

    Parameters
    ----------
    memory : bytes of the global memory that the layer's tiles may take
    metrics : among ``cycles``, ``energy`` and ``edp``; ties go to the other figure, then to less memory

    Raises
    ------
    OverflowError : for counts beyond 2**53
    """
    firsts = sorted({point.array[0] for point in points})
    seconds = sorted({point.array[1] for point in points})
    # Whatever fits a smaller array fits this one, so one space holds the mappings of all sizes.
    largest = flow.engine_of((firsts[-1], seconds[-1]), points[0].bandwidth, memory)
    problem = layer_problem(
        operator,
        largest,
        parse_objective("edp"),
        factors=IMPERFECT,
        constraints=style_demands(flow.fixes(operator)),
    )
    walk = _Walk(
        problem, flow, memory, firsts, seconds, sorted({point.bandwidth for point in points}), metrics
    )
    walk.run()
    return {
        (point, metric): best
        for point in points
        for metric in metrics
        if (best := walk.best(point, metric)) is not None
    }


class _Walk:
    """One pass through a map space."""

    def __init__(
        self,
        problem: LayerProblem,
        flow: DataflowStyle,
        memory: int,
        firsts: Sequence[int],
        seconds: Sequence[int],
        bandwidths: Sequence[Fraction],
        metrics: Sequence[str],
    ) -> None:
        self.problem = problem
        self.shape = (len(firsts), len(seconds))
        self._firsts, self._seconds = np.array(firsts), np.array(seconds)
        nest = problem.space.nest
        # Bandwidth changes cycles alone; energy and legality are read once for all of them.
        engines = {
            rate: fitted(flow.engine_of((firsts[-1], seconds[-1]), rate, memory), problem.operator)
            for rate in bandwidths
        }
        self._statements: dict[Fraction, Statement] = {
            rate: problem.statement
            if engine == nest.engine
            else problem.model.statement(replace(nest, engine=engine))
            for rate, engine in engines.items()
        }
        axes = [limit.expr for limit in problem.limits if limit.name.startswith("axis ")]
        self._axes: tuple[Expr, ...] = tuple(axes)
        tiles = {t.tensor: t.tile for t in problem.statement.traffic if t.level == MEMORY}
        level = nest.engine.level(MEMORY)
        widths = {t.name: (t.role, nest.engine.width(level, t.role)) for t in problem.operator.tensors}
        self._tiles: list[tuple[Expr, int]] = [(tile, widths[name][1]) for name, tile in tiles.items()]
        self._weights: list[tuple[Expr, int]] = [
            (tiles[name], bits) for name, (role, bits) in widths.items() if role is Role.WEIGHT
        ]
        self._groups = tuple(_coarse(group) for group in problem.space.groups)
        limits = [limit.expr for limit in problem.limits]
        roots = [problem.statement.energy, *self._axes, *(tile for tile, _ in self._tiles), *limits]
        # Values of one axis group are tabulated once, and looked up for every combination of rows.
        self._tables = Tables(self._groups, [*roots, *(s.cycles for s in self._statements.values())])
        self._leaders: dict[tuple[Fraction, str], dict[int, _Leader]] = {
            (rate, metric): {} for rate in bandwidths for metric in metrics
        }
        self._least = {key: np.full(prod(self.shape), np.inf) for key in self._leaders}
        self._decoded: dict[tuple[tuple[int, ...], tuple[int, ...]], Mapping] = {}

    def run(self) -> None:
        """Look at every candidate."""
        sizes = self._tables.sizes
        domains = [selector.domain for selector in self.problem.space.selectors]
        # The product of all groups is walked in chunks, so that memory does not grow with the space.
        for start in range(0, prod(sizes), _CHUNK):
            flat = np.arange(start, min(start + _CHUNK, prod(sizes)))
            rows = [np.asarray(index) for index in np.unravel_index(flat, sizes)] if sizes else []
            rows, known = self._static(rows)
            if rows and not len(rows[0]):
                continue
            for selectors in cartesian(*domains):
                self._look(rows, known, selectors)

    def best(self, point: MachineSize, metric: str) -> BestMapping | None:
        """The best mapping that fits a machine size, by one metric."""
        # A leader's cell is the smallest array that it fits; every larger one may use it.
        fits = [
            leader
            for cell, leader in self._leaders[point.bandwidth, metric].items()
            if self._firsts[cell // self.shape[1]] <= point.array[0]
            and self._seconds[cell % self.shape[1]] <= point.array[1]
        ]
        if not fits:
            return None
        leader = min(fits, key=lambda candidate: candidate.key)
        return BestMapping(
            Fraction(int(leader.energy), self.problem.statement.energy_scale),
            int(leader.cycles),
            int(leader.memory),
            int(leader.weights),
            self._mapping(leader),
        )

    def _mapping(self, leader: _Leader) -> Mapping:
        key = leader.rows, leader.selectors
        if key not in self._decoded:
            chosen = dict(zip(self.problem.space.selectors, leader.selectors, strict=True))
            self._decoded[key] = self.problem.decode({**self._tables.assignment(leader.rows), **chosen})
        return self._decoded[key]

    def _static(self, rows: list[Indices]) -> tuple[list[Indices], dict[Expr, Floats]]:
        """Rows that fit the largest machine; no order has a say in that."""
        reader = BatchReader({}, self._tables.known(rows))
        legal = np.ones(len(rows[0]) if rows else 1, dtype=bool)
        for limit in self.problem.limits:
            if limit.name.startswith(("axis ", "capacity ")):
                # Tile sizes decide these limits, so that they are checked once and not per choice of orders.
                legal &= reader.read(limit.expr) <= limit.bound
        kept = [index[legal] for index in rows]
        return kept, self._tables.known(kept)

    def _look(self, rows: list[Indices], known: dict[Expr, Floats], selectors: tuple[int, ...]) -> None:
        chosen: dict[Variable, Floats | int] = dict(zip(self.problem.space.selectors, selectors, strict=True))
        rows, known = self._legal(rows, known, chosen)
        count = len(rows[0]) if rows else 1
        if not count:
            return
        reader = BatchReader(chosen, dict(known))

        def read(expr: Expr) -> Floats:
            return np.broadcast_to(reader.read(expr), (count,))

        energy = read(self.problem.statement.energy)
        # The cell of a candidate: the smallest size along each axis that holds its instances.
        cells = np.zeros(count, dtype=np.int64)
        for values, axis in zip((self._firsts, self._seconds), self._axes, strict=True):
            cells = cells * len(values) + np.searchsorted(values, read(axis))
        if energy.max() >= EXACT_LIMIT:
            raise OverflowError("counts beyond 2**53: the layer is too large to walk through")
        for (rate, metric), leaders in self._leaders.items():
            cycles = read(self._statements[rate].cycles)
            first = cycles if metric == "cycles" else energy if metric == "energy" else energy * cycles
            second = energy if metric == "cycles" else cycles
            least = self._least[rate, metric]
            # Most candidates lose to an earlier one of their cell; only the others are compared further.
            near = np.flatnonzero(first <= least[cells])
            if not len(near):
                continue
            np.minimum.at(least, cells[near], first[near])
            # Within the chunk only the best of each cell are left, ties included.
            near = near[first[near] == least[cells[near]]]
            self._keep(
                leaders=leaders,
                near=near,
                cells=cells,
                first=first,
                second=second,
                energy=energy,
                cycles=cycles,
                read=read,
                rows=rows,
                selectors=selectors,
            )

    def _legal(
        self, rows: list[Indices], known: dict[Expr, Floats], chosen: dict[Variable, Floats | int]
    ) -> tuple[list[Indices], dict[Expr, Floats]]:
        """Rows for which these orders keep the stationary tensor in place."""
        count = len(rows[0]) if rows else 1
        reader = BatchReader(chosen, dict(known))
        legal = np.ones(count, dtype=bool)
        for limit in self.problem.limits:
            if not limit.name.startswith(("axis ", "capacity ")):
                legal &= reader.read(limit.expr) <= limit.bound
        if legal.all():
            return rows, known
        kept = [index[legal] for index in rows]
        return kept, self._tables.known(kept)

    def _keep(
        self,
        leaders: dict[int, _Leader],
        near: Indices,
        cells: Int64s,
        first: Floats,
        second: Floats,
        energy: Floats,
        cycles: Floats,
        read: Callable[[Expr], Floats],
        rows: list[Indices],
        selectors: tuple[int, ...],
    ) -> None:
        """Take the best of each cell, ties broken."""
        memory = _bytes([read(tile) * bits for tile, bits in self._tiles])
        # Ties go to the other figure, then to less memory, so that results do not depend on the walk.
        order = near[np.lexsort((memory[near], second[near], cells[near]))]
        _, starts = np.unique(cells[order], return_index=True)
        for place in order[starts]:
            cell = int(cells[place])
            key = (float(first[place]), float(second[place]), float(memory[place]))
            if cell not in leaders or key < leaders[cell].key:
                weights = _bytes([read(tile)[place] * bits for tile, bits in self._weights])
                leaders[cell] = _Leader(
                    key,
                    float(energy[place]),
                    float(cycles[place]),
                    float(memory[place]),
                    float(weights),
                    tuple(int(index[place]) for index in rows),
                    selectors,
                )


def _bytes(bits: Sequence[Floats]) -> Floats:
    """Whole bytes of several tiles together."""
    whole: Floats = np.ceil(np.sum(bits, axis=0) / 8)
    return whole


def _coarse(group: AxisGroup) -> AxisGroup:
    """Tiles in the global memory are the whole dimension in 1, 2, 4, 8 ... parts."""
    mask = np.ones(len(group), dtype=bool)
    for column, variable in enumerate(group.variables):
        if variable.name.endswith(f"@{MEMORY}"):
            bound = max(variable.domain)
            parts = {-(-bound // (1 << power)) for power in range(bound.bit_length() + 1)}
            mask &= np.isin(group.rows[:, column], sorted(parts))
    return group.having(group.rows[mask])
