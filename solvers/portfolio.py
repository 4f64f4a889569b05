"""The portfolio behind ``--solver auto``: branch and bound at once, CP-SAT beside it where it takes long.

Both work on the same incumbent and the same bound: what one finds or proves, the other uses.  Branch and
bound begins with a dive, so there is a mapping within a fraction of a second; most layers are proven before
CP-SAT would have stated its model, so it joins only after a head start, and only where a second worker is
allowed and reproducible traces are not asked for.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction

from tilewright import __version__
from tilewright.formulation.evaluator import Evaluation
from tilewright.formulation.mapping import Mapping
from tilewright.formulation.search import Limits, Search
from tilewright.solvers.base import Outcome, Solver
from tilewright.solvers.branch import Branch

HEAD_START = 8.0  # seconds


class Partner(Search):
    """A second solver's view of a search: the same incumbent and bound, limits of its own."""

    def __init__(self, main: Search, limits: Limits) -> None:
        self._main = main
        self.problem = main.problem
        self.limits = limits

    def offer(self, mapping: Mapping, source: str, heuristic: bool = False) -> Fraction | None:
        return self._main.offer(mapping, source, heuristic)

    def raise_bound(self, bound: Fraction, source: str) -> None:
        self._main.raise_bound(bound, source)

    @property
    def value(self) -> Fraction | None:  # type: ignore[override]
        return self._main.value

    @property
    def bound(self) -> Fraction | None:  # type: ignore[override]
        return self._main.bound

    @property
    def mapping(self) -> Mapping | None:  # type: ignore[override]
        return self._main.mapping

    @property
    def evaluation(self) -> Evaluation | None:  # type: ignore[override]
        return self._main.evaluation

    @property
    def done(self) -> bool:
        return self._main.done or self.limits.expired


class Portfolio:
    """Branch and bound, joined by CP-SAT."""

    name = "auto"
    exact = True

    def __init__(self, head_start: float = HEAD_START) -> None:
        self._head_start = head_start

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: Search) -> Outcome:
        """Search until one of the solvers has proven the optimum or a limit strikes."""
        limits = search.limits
        if limits.deterministic or limits.threads < 2:
            return Branch().solve(search)
        stop = threading.Event()
        partner = Partner(search, replace(limits, threads=limits.threads - 1, stop=stop))
        finished: list[Outcome] = []

        def join_later() -> None:
            if stop.wait(self._head_start) or search.done:
                return
            from tilewright.solvers.cpsat import CpSat  # large; most searches end before it is needed

            solver: Solver = CpSat()
            finished.append(solver.solve(partner))

        thread = threading.Thread(target=join_later, name="cpsat", daemon=True)
        thread.start()
        try:
            outcome = Branch().solve(search)
        finally:
            stop.set()
            thread.join(timeout=2.0)
        proven = outcome.exhausted or any(other.exhausted for other in finished)
        return Outcome(proven, outcome.message)
