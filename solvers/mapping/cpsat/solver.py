"""The CP-SAT solver: a cutoff, a filter by intervals, a model of what is left, and its proof."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from fractions import Fraction
from importlib.metadata import version

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.search import DisagreementError
from tilewright.solvers.mapping.cpsat.outer_tiles import OuterTiles, confined, join_outer_tiles
from tilewright.solvers.mapping.cpsat.run import Ending, run_stated
from tilewright.solvers.mapping.cpsat.statement import state
from tilewright.solvers.mapping.presolve.dive import Dive, Point
from tilewright.solvers.mapping.presolve.encode import encode, locate
from tilewright.solvers.mapping.presolve.intervals import OpenSpace, TableIntervals, probe, whole_space

DIVE_SECONDS = 2.0
DIVES = 4  # one after another, while they improve
DIVE_SHARE = 0.25  # of the time that is left
SLICE = 5.0  # deterministic time of a first reproducible run
PACE = 0.5  # deterministic time per second of the limit


class CpSat:
    """States the whole mapping problem to CP-SAT and proves its optimum."""

    name = "cpsat"
    exact = True
    states_models = True

    @property
    def version(self) -> str:
        return f"OR-Tools {version('ortools')}"

    def solve(self, search: LayerSearch) -> Outcome:
        """Improve and prove until done.

        Every round asks for a mapping strictly better than the incumbent (by the gap that is allowed):
        the rows, choices and outer tiles that intervals exclude are left out, the rest is one model.  A
        round ends with the model closed, or early when a new incumbent makes it much smaller.
        """
        return _Proof(search).run()


class _Proof:
    """One search."""

    name = CpSat.name

    def __init__(self, search: LayerSearch) -> None:
        self.search = search
        self.problem = search.problem
        statement = self.problem.statement
        roots = [statement.energy, statement.cycles, *(limit.expr for limit in self.problem.limits)]
        self.tables = Tables(self.problem.space.groups, roots, search.limits)
        self.beaten: list[tuple[int, int]] = []
        self.best: MappingABC[Variable, int] | None = None
        self.own: Mapping | None = None  # the mapping of ``best``
        limits = search.limits
        self.budget = PACE * limits.seconds if limits.seconds is not None else math.inf
        self.slice = min(SLICE, self.budget) if limits.deterministic else None

    def run(self) -> Outcome:
        """Rounds until the space is accounted for or a limit strikes."""
        if not all(self.tables.sizes):
            return Outcome(True, "no tile sizes satisfy the constraints on one dimension")
        left = whole_space(self.problem, self.tables)
        self._bound_everything(left)
        dives = 0
        while not self.search.done:
            dived = self._dive(left)
            dives = dives + 1 if dived else 0
            cutoff = self._cutoff()
            left, outer = self._filter(left, cutoff)
            if self.search.done:
                break
            if left.empty:
                return self._closed(cutoff)
            if dived and dives < DIVES:
                continue  # among fewer rows the next descent sees more
            outcome = self._round(left, outer, cutoff)
            if outcome is not None:
                return outcome
        return Outcome(self._proven())

    # -- one round -----------------------------------------------------------------------------------

    def _cutoff(self) -> int | None:
        """What the key of a mapping worth finding stays below, in scaled units."""
        if self.search.key is None:
            return None
        return math.ceil(self.search.key * self.problem.key_scale * (1 - Fraction(self.search.limits.gap)))

    def _filter(self, left: OpenSpace, cutoff: int | None) -> tuple[OpenSpace, OuterTiles | None]:
        """Close what cannot beat the cutoff, until nothing more closes."""
        outer: OuterTiles | None = None
        while not left.empty and not self.search.limits.expired:
            before = left.size
            left = probe(self.problem, self.tables, left, cutoff, self.search.limits)
            if left.empty or self.search.limits.expired:
                break
            outer = join_outer_tiles(self.problem, self.tables, left, cutoff, self.search.limits)
            if len(outer):
                self._raise_bound(outer.least_key(*self.problem.objective.key_powers), cutoff)
            left = confined(outer, self.problem, left)
            if left.size == before:
                break
        return left, outer

    def _round(self, left: OpenSpace, outer: OuterTiles | None, cutoff: int | None) -> Outcome | None:
        """State and solve one model; ``None`` where another round is due."""
        limits = self.search.limits
        try:
            stated = state(self.problem, self.tables, left, cutoff, self._marks(cutoff), outer, limits)
        except LimitReachedError:
            return Outcome(self._proven())
        if self.best is not None:
            stated.hint(self.best)

        def improved(assignment: MappingABC[Variable, int]) -> bool:
            return self._offer(assignment, cutoff) and self._shrinks(outer)

        def bounded(bound: int) -> None:
            self._raise_bound(bound * stated.scale, cutoff)

        before = self.search.key
        report = run_stated(stated, limits, improved, bounded, self._done, self.slice)
        self.search.tally.nodes += report.branches
        if report.ending is Ending.FAILED:
            return Outcome(False, report.message, error=True)
        self.search.doubt(report.message)
        if report.bound is None:
            return self._closed(cutoff)
        bounded(report.bound)
        if report.ending is Ending.STOPPED and self.search.key == before:
            if self.slice is None:
                return Outcome(self._proven())
            self.slice *= 2
        if self.slice is not None:
            self.budget -= report.effort
            self.slice = min(self.slice, self.budget)
            if self.slice <= 0:
                return Outcome(self._proven())
        return None

    def _done(self) -> bool:
        return self.search.done

    def _offer(self, assignment: MappingABC[Variable, int], cutoff: int | None) -> bool:
        """Offer a solution; whether it is better than the incumbent."""
        before = self.search.key
        key = self.search.confirm(self.problem.decode(assignment), self.name)
        if before is None or key < before:
            self.best, self.own = dict(assignment), self.search.answer
            return True
        if cutoff is not None and key * self.problem.key_scale >= cutoff:
            self._note(assignment, cutoff)
        return False

    def _note(self, assignment: MappingABC[Variable, int], cutoff: int) -> None:
        """Remember a solution that passed only because the model's objective is scaled down."""
        a, b = self.problem.objective.key_powers
        statement = self.problem.statement
        energy, cycles = (evaluate(expr, assignment) for expr in (statement.energy, statement.cycles))
        if energy**a * cycles**b < cutoff:
            raise DisagreementError("a solution of CP-SAT's model costs more than the statement says")
        self.beaten.append((energy, cycles))

    def _shrinks(self, outer: OuterTiles | None) -> bool:
        """Whether the new incumbent closes half of the outer tiles."""
        cutoff = self._cutoff()
        if outer is None or cutoff is None or len(outer) < 8:
            return False
        a, b = self.problem.objective.key_powers
        keys = outer.energy.astype(np.float64) ** a * outer.cycles.astype(np.float64) ** b
        return int((keys < cutoff).sum()) * 2 <= len(outer)

    def _marks(self, cutoff: int | None) -> list[tuple[int, int]]:
        """Pairs of energy and cycles that are known to reach the cutoff."""
        evaluation = self.search.evaluation
        if evaluation is None or cutoff is None:
            return []
        energy = int(evaluation.energy * self.problem.statement.energy_scale)
        return [(energy, evaluation.cycles), *self.beaten]

    # -- incumbents ----------------------------------------------------------------------------------

    def _dive(self, left: OpenSpace) -> bool:
        """Descend among the open rows; whether that improves the incumbent."""
        limits, before = self.search.limits, self.search.key
        dive = Dive(self.problem, self.tables, limits, left, DIVE_SHARE, DIVE_SECONDS)
        point = dive.run(self._start(left))
        if point is None:
            return False
        mapping = self.problem.decode(dive.assignment(point))
        self.search.offer(mapping, f"{self.name} descent", origin=Origin.HEURISTIC)
        if self.search.key == before:
            return False
        self.best, self.own = dive.assignment(point), self.search.answer
        return True

    def _start(self, left: OpenSpace) -> Point | None:
        """The incumbent as a point, if it is in the space."""
        mapping, value = self.search.answer, self.search.key
        if mapping is None or value is None:
            return None
        if mapping is self.own and self.best is not None:
            rows = locate(self.tables, self.best)
            chosen = tuple(self.best[selector] for selector in self.problem.space.selectors)
            return None if rows is None else Point(float(value * self.problem.key_scale), rows, chosen)
        return encode(self.problem, self.tables, mapping, left.choices)

    # -- bounds --------------------------------------------------------------------------------------

    def _bound_everything(self, left: OpenSpace) -> None:
        """What intervals prove of the whole space."""
        intervals = TableIntervals(self.tables, left.rows)
        a, b = self.problem.objective.key_powers
        energy, cycles = (
            max(0, intervals.whole_low(e))
            for e in (self.problem.statement.energy, self.problem.statement.cycles)
        )
        self._raise_bound(energy**a * cycles**b, None)

    def _raise_bound(self, key: int, cutoff: int | None) -> None:
        """No mapping below the cutoff has a smaller key."""
        valid = key if cutoff is None else min(key, cutoff)
        bound = Fraction(valid, self.problem.key_scale)
        value = self.search.key
        if valid > 0 or value == 0:
            self.search.raise_bound(bound, self.name)

    def _closed(self, cutoff: int | None) -> Outcome:
        """Nothing stays below the cutoff."""
        if cutoff is None:
            return Outcome(True, "no mapping satisfies all constraints")
        self._raise_bound(max(cutoff, 0), cutoff)
        return Outcome(True)

    def _proven(self) -> bool:
        return self.search.key is not None and self.search.key == self.search.bound
