"""The portfolio behind ``--solver auto``: branch and bound at once, CP-SAT in parallel where it takes long.

Both work on the same incumbent and the same bound: what one finds or proves, the other uses.  Branch and
bound begins with a dive, so there is a mapping within a fraction of a second; most layers are proven before
CP-SAT would have stated its model, so it joins only after a head start, and only where a second worker is
allowed and reproducible traces are not asked for; and only for even storage, which it states as one model,
and where there is memory for tables of its own.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from tilewright import __version__
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.stopping import WhenSet
from tilewright.solvers.background import Background, outcome_of
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.narrowed import MOST_TABLED

HEAD_START = 8.0  # seconds
GRACE = 0.5  # seconds that CP-SAT has to come back once it is asked to stop


class Portfolio:
    """Branch and bound, joined by CP-SAT."""

    name = "auto"
    exact = True
    knows_arrangements = True

    def __init__(self, head_start: float = HEAD_START) -> None:
        self._head_start = head_start

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Search until one of the solvers has proven the optimum or a limit strikes.

        Where CP-SAT dies, branch and bound continues; its proof stands, without one the outcome is an error.
        """
        limits, problem = search.limits, search.problem
        if (
            limits.deterministic
            or limits.threads < 2
            or problem.is_uneven
            or problem.space.rows > MOST_TABLED
        ):
            return Branch().solve(search)
        over = threading.Event()
        delayed = _DelayedCpSat(search, self._head_start, over)
        delayed.start()
        try:
            outcome = Branch().solve(search.within(limits.stopping(WhenSet(over))))
        finally:
            delayed.end()
        other = delayed.outcome
        if other is not None and other.exhausted and not outcome.exhausted:
            return other
        if other is not None and other.error:
            notes = "; ".join(filter(None, (outcome.message, f"CP-SAT: {other.message}")))
            return Outcome(outcome.exhausted, notes, error=not outcome.exhausted)
        return outcome


class _DelayedCpSat:
    """CP-SAT in a thread of its own, from some seconds after the start.

    The thread is not a daemon: native code that is still running when the interpreter ends would crash it.
    """

    def __init__(self, search: LayerSearch, head_start: float, over: threading.Event) -> None:
        self._search = search
        self._head_start = head_start
        self._over = over
        self._stop = threading.Event()
        self._thread = Background(self._work, "cpsat", daemon=False)

    @property
    def outcome(self) -> Outcome | None:
        """How CP-SAT ended; ``None`` while it runs."""
        return outcome_of(self._thread)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Ask it to stop; it is left behind where it does not do so soon."""
        self._stop.set()
        self._thread.join(GRACE)

    def _work(self) -> Outcome:
        if self._stop.wait(self._head_start) or self._search.done:
            return Outcome()
        from tilewright.solvers.mapping.cpsat import CpSat  # large; most searches end before it is needed

        limits = self._search.limits.stopping(WhenSet(self._over) | WhenSet(self._stop))
        with self._search.at_work(CpSat.name):
            outcome = CpSat().solve(self._search.within(replace(limits, threads=limits.threads - 1)))
        if outcome.exhausted:
            self._over.set()
        return outcome
