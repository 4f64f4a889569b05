"""The search: cells in the order of their bounds, each solved by relaxations that are refined until exact.

A relaxation's bound and the evaluator's value meet from both sides.  Every decision that the solver visits
is evaluated; where the relaxation valued it too low, lines through it, or its exclusion together with all
that is provably no better, make the next relaxation exact there.  Every round excludes at least one
decision, so the search ends with a proof.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tables import Tables
from tilewright.formulation.method import Outcome
from tilewright.solvers.mapping.mip.cell import Stated
from tilewright.solvers.mapping.mip.child import Child, ChildError
from tilewright.solvers.mapping.mip.decision import Decision, evaluated
from tilewright.solvers.mapping.mip.partition import Cell, cell_of, cells_of, halves
from tilewright.solvers.mapping.presolve.dive import Dive
from tilewright.solvers.mapping.presolve.encode import encode
from tilewright.solvers.mapping.presolve.intervals import OpenSpace, probe, whole_space

ROUNDS = 12  # of lines added to the linear relaxation before the MIP
RESTART = 0.98  # an incumbent this much better makes a smaller model worth a fresh start
DIVE = 2.0  # seconds
DIVE_SHARE = 0.3  # of the time limit


class MipSearch:
    """One search with one worker process.

    Parameters
    ----------
    name : of the solver, as in the trace
    """

    def __init__(self, search: LayerSearch, child: Child, name: str) -> None:
        self.search = search
        self.child = child
        self.name = name
        self.problem = problem = search.problem
        a, b = problem.objective.key_powers
        roots = [problem.statement.energy] * bool(a) + [problem.statement.cycles] * bool(b)
        limits = [limit.expr for limit in problem.limits]
        self.tables = Tables(problem.space.groups, [*roots, *limits], search.limits)
        self.best: Decision | None = None
        self.open: list[Cell] = []
        self._relaxed: dict[int, tuple[int | None, Stated, Sequence[float] | None]] = {}

    @property
    def key(self) -> int | None:
        """Scaled key of the incumbent."""
        return None if self.search.key is None else int(self.search.key * self.problem.key_scale)

    def run(self) -> Outcome:
        """Search until every cell is closed or a limit strikes."""
        every = whole_space(self.problem, self.tables)
        if every.empty:
            return Outcome(True, "no tile sizes satisfy the constraints on one dimension")
        limits = self.search.limits
        left = probe(self.problem, self.tables, every, None, limits)
        if not left.empty and not self.search.done:
            self._tell(cell_of(self.problem, self.tables, left).bound)
            self._dive(left)
            left = probe(self.problem, self.tables, left, self.key, limits)
        self.open = cells_of(self.problem, self.tables, left, self.key, limits)
        heapq.heapify(self.open)
        while self.open:
            self._tell(self.open[0].bound)
            if self.search.done:
                return Outcome(False)
            for cell in self._work(heapq.heappop(self.open)):
                heapq.heappush(self.open, cell)
            if self.search.limits.expired:
                return Outcome(False)
        if self.search.key is None:
            return Outcome(True, "no mapping satisfies all constraints")
        self.search.raise_bound(self.search.key * (1 - Fraction(self.search.limits.gap)), self.name)
        return Outcome(True)

    def _dive(self, left: OpenSpace) -> None:
        """A first incumbent, from the one that the search begins with if there is one."""
        limits, statement = self.search.limits, self.problem.statement
        exprs = [limit.expr for limit in self.problem.limits]
        both = Tables(self.problem.space.groups, [statement.energy, statement.cycles, *exprs], limits)
        start = None if self.search.answer is None else encode(self.problem, both, self.search.answer)
        if start is not None:
            self.best = evaluated(self.problem, both, start.rows, start.selectors)
        point = Dive(self.problem, both, limits, left, DIVE_SHARE, DIVE).run(start)
        if point is not None:
            self._offer(evaluated(self.problem, both, point.rows, point.selectors))

    # -- bounds --------------------------------------------------------------------------------------

    def _tell(self, bound: int) -> None:
        """Nothing open has a smaller key."""
        if bound > 0:
            key = self.key
            least = bound if key is None else min(bound, key)
            self.search.raise_bound(Fraction(least, self.problem.key_scale), self.name)

    def _bound(self, cell: Cell, bound: int) -> None:
        """The running cell has a better bound."""
        if bound > cell.bound:
            cell.bound = bound
            self._tell(min([bound, *(other.bound for other in self.open[:1])]))

    def _closed(self, cell: Cell) -> bool:
        if self.key is None:
            return False
        return cell.bound >= self.key * (1 - Fraction(self.search.limits.gap))

    # -- one cell ------------------------------------------------------------------------------------

    def _work(self, cell: Cell) -> list[Cell]:
        """Solve a cell until it is closed or split; what is left of it."""
        while not self.search.limits.expired:
            if self._closed(cell):
                return []
            key, stated, values = self._relaxed.pop(id(cell), (None, None, None))
            if stated is None or key != self.key:
                cell.left = probe(self.problem, self.tables, cell.left, self.key, self.search.limits)
                if cell.left.empty:
                    return []
                key = self.key
                try:
                    stated = Stated(self.problem, self.tables, cell, key, self._check)
                except LimitReachedError:
                    break
                if stated.empty:
                    return []
                values = self._relax(stated, cell)
                if self.open and self.open[0].bound < cell.bound and not self._closed(cell):
                    self._relaxed[id(cell)] = key, stated, values
                    return [cell]
            if values is None or self._closed(cell):
                continue
            loss = 0.0 if cell.cycles is None else stated.chord_loss(values)
            parts = self._split(stated, cell, key, loss, values)
            if parts is not None:
                return parts
            while self.key == key and not self.search.limits.expired:
                parts = self._mip(stated, cell, key)
                if parts is not None:
                    return parts
                if self._closed(cell):
                    return []
        return [cell]

    def _check(self) -> None:
        if self.search.limits.expired:
            raise LimitReachedError

    def _relax(self, stated: Stated, cell: Cell) -> Sequence[float] | None:
        """The linear relaxation with lines added where it cheats; ``None`` where the cell is closed."""
        values: Sequence[float] | None = None
        before = -1.0
        for decision in cell.visited:
            stated.touch(decision)
        for _ in range(ROUNDS):
            result = self._solve(stated, relaxed=True)
            if result is None:
                break
            if result["status"] == "infeasible":
                cell.bound = max(cell.bound, self.key or cell.bound)
                cell.left = OpenSpace(cell.left.rows, [])
                return None
            values, bound = result["values"], result["bound"]
            if values is None or bound is None:
                break
            self._bound(cell, stated.key_bound(bound))
            if self._closed(cell) or bound < before + 1e-4 * abs(bound) or not stated.separate(values):
                break
            before = bound
        return values

    def _mip(self, stated: Stated, cell: Cell, key: int | None) -> list[Cell] | None:
        """One MIP solve; what is left of the cell, or ``None`` where it must be solved again."""
        result = self._solve(stated, False, cell)
        if result is None or result["status"] == "stopped":
            if result is not None and result["bound"] is not None:
                self._bound(cell, stated.key_bound(result["bound"]))
            return [cell] if self.search.limits.expired else None
        if result["status"] == "infeasible":
            return []
        values = result["values"]
        if values is None or result["bound"] is None:
            raise ChildError("the solver claims an optimum without a solution")
        self._bound(cell, stated.key_bound(result["bound"]))
        decision = stated.decision(values)
        self._offer(decision)
        if self._closed(cell):
            return []
        stated.separate(values)
        cell.visited.append(decision)
        stated.touch(decision)
        stated.exclude(decision, self.key)
        return self._split(stated, cell, key, stated.loss(decision), values)

    def _split(
        self, stated: Stated, cell: Cell, key: int | None, loss: float, values: Sequence[float]
    ) -> list[Cell] | None:
        """The cell in two ranges of cycles where the chords are what keeps its bound low."""
        if cell.cycles is None or key is None:
            return None
        low, high = stated.cycle_range
        if low >= high or loss < 0.5 * stated.gap(key, values):
            return None
        return halves(cell, low, high)

    def _solve(self, stated: Stated, relaxed: bool, cell: Cell | None = None) -> dict[str, Any] | None:
        """One request; solutions are offered and bounds told as they come."""
        limits = self.search.limits
        start = None
        if not relaxed and self.best is not None:
            start = stated.start(self.best)
        seconds = 1e7 if limits.remaining is None else max(0.01, limits.remaining)
        request = {
            "model": stated.relaxation.data(start),
            "seconds": seconds,
            "threads": limits.threads,
            "seed": limits.seed,
            "relaxed": relaxed,
        }
        key = self.key
        for reply in self.child.solve(request):
            kind = reply["type"]
            if kind == "result":
                if reply["status"] not in ("optimal", "infeasible", "stopped"):
                    raise ChildError(str(reply["status"]))
                return reply
            if kind == "solution" and cell is not None:
                decision = stated.decision(reply["values"])
                self._offer(decision)
                better = self.key
                if better is not None and (key is None or better < RESTART * key):
                    self.child.stop()
            elif kind == "bound" and cell is not None:
                self._bound(cell, stated.key_bound(reply["bound"]))
        return None

    def _offer(self, decision: Decision) -> None:
        key = self.key
        if decision.legal and (key is None or decision.key < key):
            self.best = decision
            self.search.confirm(self.problem.decode(decision.assignment), self.name)
