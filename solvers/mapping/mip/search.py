"""The search: subproblems in the order of their bounds, each by relaxations that are refined until exact.

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
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.method import Outcome
from tilewright.solvers.mapping.mip.child import Child, ChildError
from tilewright.solvers.mapping.mip.decision import Decision, evaluated
from tilewright.solvers.mapping.mip.subproblem_model import SubproblemModel
from tilewright.solvers.mapping.mip.subproblems import Subproblem, halves, subproblem_of, subproblems_of
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
        self.open: list[Subproblem] = []
        self._relaxed: dict[int, tuple[int | None, SubproblemModel, Sequence[float] | None]] = {}

    @property
    def key(self) -> int | None:
        """Scaled key of the incumbent."""
        return None if self.search.key is None else int(self.search.key * self.problem.key_scale)

    def run(self) -> Outcome:
        """Search until every subproblem is closed or a limit strikes."""
        every = whole_space(self.problem, self.tables)
        if every.empty:
            return Outcome(True, "no tile sizes satisfy the constraints on one dimension")
        limits = self.search.limits
        left = probe(self.problem, self.tables, every, None, limits)
        if not left.empty and not self.search.done:
            self._tell(subproblem_of(self.problem, self.tables, left).bound)
            self._dive(left)
            left = probe(self.problem, self.tables, left, self.key, limits)
        self.open = subproblems_of(self.problem, self.tables, left, self.key, limits)
        heapq.heapify(self.open)
        while self.open:
            self._tell(self.open[0].bound)
            if self.search.done:
                return Outcome(False)
            for subproblem in self._work(heapq.heappop(self.open)):
                heapq.heappush(self.open, subproblem)
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

    def _bound(self, subproblem: Subproblem, bound: int) -> None:
        """The running subproblem has a better bound."""
        if bound > subproblem.bound:
            subproblem.bound = bound
            self._tell(min([bound, *(other.bound for other in self.open[:1])]))

    def _closed(self, subproblem: Subproblem) -> bool:
        if self.key is None:
            return False
        return subproblem.bound >= self.key * (1 - Fraction(self.search.limits.gap))

    # -- one subproblem ------------------------------------------------------------------------------

    def _work(self, subproblem: Subproblem) -> list[Subproblem]:
        """Solve a subproblem until it is closed or split; what is left of it."""
        while not self.search.done:
            if self._closed(subproblem):
                return []
            key, model, values = self._relaxed.pop(id(subproblem), (None, None, None))
            if model is None or key != self.key:
                subproblem.left = probe(
                    self.problem, self.tables, subproblem.left, self.key, self.search.limits
                )
                if subproblem.left.empty:
                    return []
                key = self.key
                try:
                    model = SubproblemModel(self.problem, self.tables, subproblem, key, self._check)
                except LimitReachedError:
                    break
                if model.empty:
                    return []
                values = self._relax(model, subproblem)
                if self.open and self.open[0].bound < subproblem.bound and not self._closed(subproblem):
                    self._relaxed[id(subproblem)] = key, model, values
                    return [subproblem]
            if values is None or self._closed(subproblem):
                continue
            loss = 0.0 if subproblem.cycles is None else model.chord_loss(values)
            parts = self._split(model, subproblem, key, loss, values)
            if parts is not None:
                return parts
            while self.key == key and not self.search.done:
                parts = self._mip(model, subproblem, key)
                if parts is not None:
                    return parts
                if self._closed(subproblem):
                    return []
        return [subproblem]

    def _check(self) -> None:
        if self.search.limits.ends(self.search):
            raise LimitReachedError

    def _relax(self, model: SubproblemModel, subproblem: Subproblem) -> Sequence[float] | None:
        """The linear relaxation with lines added where it cheats; ``None`` where the subproblem is closed."""
        values: Sequence[float] | None = None
        before = -1.0
        for decision in subproblem.visited:
            model.touch(decision)
        for _ in range(ROUNDS):
            result = self._solve(model, relaxed=True)
            if result is None:
                break
            if result["status"] == "infeasible":
                subproblem.bound = max(subproblem.bound, self.key or subproblem.bound)
                subproblem.left = OpenSpace(subproblem.left.rows, [])
                return None
            values, bound = result["values"], result["bound"]
            if values is None or bound is None:
                break
            self._bound(subproblem, model.key_bound(bound))
            if self._closed(subproblem) or bound < before + 1e-4 * abs(bound) or not model.separate(values):
                break
            before = bound
        return values

    def _mip(
        self, model: SubproblemModel, subproblem: Subproblem, key: int | None
    ) -> list[Subproblem] | None:
        """One MIP solve; what is left of the subproblem, or ``None`` where it must be solved again."""
        result = self._solve(model, False, subproblem)
        if result is None or result["status"] == "stopped":
            if result is not None and result["bound"] is not None:
                self._bound(subproblem, model.key_bound(result["bound"]))
            return [subproblem] if self.search.done else None
        if result["status"] == "infeasible":
            return []
        values = result["values"]
        if values is None or result["bound"] is None:
            raise ChildError("the solver claims an optimum without a solution")
        self._bound(subproblem, model.key_bound(result["bound"]))
        decision = model.decision(values)
        self._offer(decision)
        if self._closed(subproblem):
            return []
        model.separate(values)
        subproblem.visited.append(decision)
        model.touch(decision)
        model.exclude(decision, self.key)
        return self._split(model, subproblem, key, model.loss(decision), values)

    def _split(
        self,
        model: SubproblemModel,
        subproblem: Subproblem,
        key: int | None,
        loss: float,
        values: Sequence[float],
    ) -> list[Subproblem] | None:
        """The subproblem in two ranges of cycles where the chords are what keeps its bound low."""
        if subproblem.cycles is None or key is None:
            return None
        low, high = model.cycle_range
        if low >= high or loss < 0.5 * model.gap(key, values):
            return None
        return halves(subproblem, low, high)

    def _solve(
        self, model: SubproblemModel, relaxed: bool, subproblem: Subproblem | None = None
    ) -> dict[str, Any] | None:
        """One request; solutions are offered and bounds reported as they come."""
        limits = self.search.limits
        start = None
        if not relaxed and self.best is not None:
            start = model.start(self.best)
        seconds = 1e7 if limits.remaining is None else max(0.01, limits.remaining)
        request = {
            "model": model.relaxation.data(start),
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
            if kind == "solution" and subproblem is not None:
                decision = model.decision(reply["values"])
                self._offer(decision)
                better = self.key
                if better is not None and (key is None or better < RESTART * key):
                    self.child.stop()
            elif kind == "bound" and subproblem is not None:
                self._bound(subproblem, model.key_bound(reply["bound"]))
        return None

    def _offer(self, decision: Decision) -> None:
        key = self.key
        if decision.legal and (key is None or decision.key < key):
            self.best = decision
            self.search.confirm(self.problem.decode(decision.assignment), self.name)
