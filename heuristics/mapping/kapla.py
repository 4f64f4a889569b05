"""KAPLA's intra-layer solver (algorithm 1, section IV-C): bottom-up stacking and caching by cost descent.

The hierarchy is worked through from the PEs outwards.  At every level, for every order of the loops that
feed it, the tensors are first *stacked* (spread over the level's buffers), then *cached* (enlarged in each
buffer): one dimension at a time is taken to its next size, the one that helps the most accessed tensor
most; the second most accessed tensor breaks ties.  What lies outside the level is one loop nest around it
until it is decided itself.  The best scheme of the level, by the objective, is what the next level starts
from.

Accesses are the cost model's own counts, so multicast, systolic passing and reduction along an array, and
levels that do not keep every tensor, are what the machine says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product as cartesian

import numpy as np

from tilewright import __version__
from tilewright.formulation.expression import Expr, Variable, total
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import level_positions
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.foundation.arrays import Floats, Indices
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.partial import DecisionSpace, Measure, Partial

Sizes = dict[Measure, int]


@dataclass(frozen=True, slots=True)
class _Scheme:
    """A partial mapping whose levels are decided up to some level, and its objective key so far."""

    partial: Partial
    key: float


@dataclass(frozen=True)
class Kapla:
    """Bottom-up stacking and caching by cost descent."""

    ties: str = option(
        "second",
        "tie-breaker: the second most accessed tensor, or position as in the program",
        choices=("second", "position"),
    )
    guide: str = option(
        "accesses",
        "what a step must lower: accesses as in the paper, or the objective",
        choices=("accesses", "objective"),
    )
    keep: int = option(1, "partial schemes that every level passes on", low=1)

    name = "kapla"
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Build from the PEs outwards, once per residency."""
        descent = _Descent(search, self.ties == "second", self.guide == "accesses")
        for residency in descent.residencies():
            whole = Partial.whole(descent.decision_space, residency)
            schemes = [_Scheme(whole, np.inf)] if whole.feasible else []
            reached = descent.levels[0]
            for level in descent.levels:
                grown = [inner for scheme in schemes for inner in descent.at_level(scheme.partial, level)]
                if search.limits.expired and not grown:
                    break  # what the levels inside have decided is complete with one nest around it
                schemes = sorted(grown, key=lambda scheme: scheme.key)[: self.keep]
                reached = level
                if search.limits.expired:
                    break
            search.tally.nodes += len(schemes)
            for scheme in schemes:
                mapping = search.problem.decode(descent.assignment(scheme.partial, reached))
                search.offer(mapping, self.name, origin=Origin.HEURISTIC)
            if search.done:
                break
        return Outcome(False, "" if search.key is not None else "the descent met no legal mapping")


class _Descent:
    """One problem's levels, and the descent at each."""

    def __init__(self, search: LayerSearch, second: bool, by_accesses: bool) -> None:
        self._search = search
        self._by_accesses = by_accesses
        self._second = second
        self.problem = search.problem
        self.decision_space = DecisionSpace(search.problem, search.limits)
        nest = self.problem.space.nest
        self._nest = nest
        self._positions = level_positions(nest.blocks)
        self._orders = {b.level: b.selector for b in nest.blocks if b.is_temporal}
        self.levels = sorted((level for level in self._positions if level > 0), reverse=True)
        self._dims = [dim for dim, bound in nest.operator.bounds.items() if bound > 1]

    def residencies(self) -> Iterator[dict[Variable, int]]:
        """All choices of the levels that store each tensor."""
        orders = {selector for selector in self._orders.values() if isinstance(selector, Variable)}
        free = [selector for selector in self.problem.space.selectors if selector not in orders]
        for values in cartesian(*(selector.domain for selector in free)):
            yield dict(zip(free, values, strict=True))

    def at_level(self, inner: Partial, level: int) -> Iterator[_Scheme]:
        """The level's scheme for every order of the loops that feed it."""
        selector = self._orders[level - 1]
        for order in selector.domain if isinstance(selector, Variable) else (None,):
            chosen = dict(inner.chosen)
            if isinstance(selector, Variable) and order is not None:
                chosen[selector] = order
            start = replace(inner, chosen=chosen)
            if not start.feasible or self._search.limits.expired:
                continue
            blocks = [b for b in self._nest.spatial if self._nest.blocks[b].level == level - 1]
            stack = [Measure(dim, block, spatial=True) for block in blocks for dim in self._dims]
            cache = [Measure(dim, self._positions[level]) for dim in self._dims]
            partial = self._enlarged(start, stack, level, stacking=True)
            partial = self._enlarged(partial, cache, level, stacking=False)
            key = float(self._read([self._rows(partial, level)], partial, self.problem.key)[0][0])
            yield _Scheme(partial, key)

    def _enlarged(
        self, start: Partial, measures: Sequence[Measure], level: int, *, stacking: bool
    ) -> Partial:
        """Take one measure after the other to its next size, as far as that helps and fits.

        Stacking continues where no tensor is accessed more often, since it adds parallelism; caching only
        where some tensor is accessed less often.
        """
        sizes: Sizes = {}
        partial = start
        for measure in measures:
            for value in partial.options(measure):
                enlarged = partial.fixed(measure, value)
                if enlarged.feasible:
                    partial, sizes[measure] = enlarged, value
                    break
        costs = self._costs([self._rows(partial, level)], partial, level)[:, 0]
        while not self._search.limits.expired:
            candidates = list(self._larger(start, sizes, measures))
            if not candidates:
                break
            rows = [self._rows(candidate, level) for _, candidate in candidates]
            following = self._costs(rows, partial, level)
            place = self._choice(costs, following, stacking)
            if place is None:
                break
            sizes, partial = candidates[place]
            costs = following[:, place]
        return partial

    def _larger(
        self, start: Partial, sizes: Sizes, measures: Sequence[Measure]
    ) -> Iterator[tuple[Sizes, Partial]]:
        """Every feasible scheme in which one measure has its next size."""
        for measure in measures:
            if measure not in sizes:
                continue
            others = start
            for other, value in sizes.items():
                if other != measure:
                    others = others.fixed(other, value)
            following = [value for value in others.options(measure) if value > sizes[measure]]
            if following:
                enlarged = others.fixed(measure, following[0])
                if enlarged.feasible:
                    yield {**sizes, measure: following[0]}, enlarged

    def _choice(self, now: Floats, then: Floats, stacking: bool) -> int | None:
        """The candidate that helps the most accessed tensor most; ``None`` where none helps.

        Parameters
        ----------
        now : accesses of every tensor
        then : the same for every candidate, of shape (tensors, candidates)
        """
        order = np.argsort(-now, kind="stable")
        ranked = then[order]
        if not self._second:
            first = np.flatnonzero(ranked[0] == ranked[0].min())
            best = int(first[0])
        else:
            best = int(np.lexsort(ranked[::-1])[0])
        before, after = [*now[order]], [*ranked[:, best]]
        return best if after < before or (stacking and after == before) else None

    def _costs(self, rows: Sequence[Sequence[int]], partial: Partial, level: int) -> Floats:
        """What steps lower: accesses of every tensor to the store outside the level, or the objective.

        Of shape (tensors, candidates), or (1, candidates).
        """
        if not self._by_accesses:
            return np.stack(self._read(rows, partial, self.problem.key))
        counts: list[Expr] = []
        names = [memory.name for memory in self._nest.engine.levels]
        for tensor in self._nest.operator.tensors:
            rowset = [
                row
                for row in self.problem.statement.traffic
                if row.tensor == tensor.name and names.index(row.level) < level
            ]
            outer = max(rowset, key=lambda row: names.index(row.level))
            counts.append(total([outer.reads, outer.updates]))
        return np.stack([*self._read(rows, partial, *counts)])

    def _read(self, rows: Sequence[Sequence[int]], partial: Partial, *exprs: Expr) -> list[Floats]:
        """Expressions at completed schemes; orders that are still open take their first option."""
        values: dict[Variable, Floats | int] = {s: s.domain[0] for s in self.problem.space.selectors}
        values |= partial.chosen
        for position, table in enumerate(self.decision_space.tables.tables):
            own = np.array([row[position] for row in rows], dtype=np.intp)
            for column, variable in enumerate(table.group.variables):
                values[variable] = table.group.rows[own, column].astype(np.float64)
        reader = BatchReader(values)
        return [np.broadcast_to(reader.read(expr), (len(rows),)) for expr in exprs]

    def _rows(self, partial: Partial, level: int) -> list[int]:
        """One row per group that completes a scheme: everything outside the level is one nest around it.

        The tiles of all levels outside are as large as they may be, the level's own as small.
        """
        outside = range(1, self._positions[level - 1] + 1)
        result: list[int] = []
        for table, rows in zip(self.decision_space.tables.tables, partial.rows, strict=True):
            left: Indices = rows
            for dim in table.group.dims:
                for boundary in outside:
                    values = self.decision_space.values(Measure(dim, boundary))[left]
                    left = left[values == values.max()]
                values = self.decision_space.values(Measure(dim, self._positions[level]))[left]
                left = left[values == values.min()]
            result.append(int(left[0]))
        return result

    def assignment(self, partial: Partial, level: int) -> dict[Variable, int]:
        """Tile sizes and choices of a scheme decided from the PEs out to ``level``, completed as read."""
        rows = self._rows(partial, level)
        open_choices = {selector: selector.domain[0] for selector in self.problem.space.selectors}
        return {**open_choices, **self.decision_space.tables.assignment(rows), **partial.chosen}
