"""The portfolio behind ``--solver auto``: branch and bound at once, CP-SAT beside it where it takes long.

Both work on the same incumbent and the same bound: what one finds or proves, the other uses.  Branch and
bound begins with a dive, so there is a mapping within a fraction of a second; most layers are proven before
CP-SAT would have stated its model, so it joins only after a head start, and only where a second worker is
allowed and reproducible traces are not asked for.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from tilewright import __version__
from tilewright.formulation.search import Search
from tilewright.solvers.base import Outcome
from tilewright.solvers.company import Company, outcome_of
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.partner import Partner

HEAD_START = 8.0  # seconds
GRACE = 0.5  # seconds that CP-SAT has to come back once it is asked to stop


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
        """Search until one of the solvers has proven the optimum or a limit strikes.

        Where CP-SAT dies, branch and bound goes on; its proof stands, without one the outcome is an error.
        """
        limits = search.limits
        if limits.deterministic or limits.threads < 2:
            return Branch().solve(search)
        over = threading.Event()
        beside = _Beside(search, self._head_start, over)
        beside.start()
        try:
            outcome = Branch().solve(Partner(search, limits, over))
        finally:
            beside.end()
        other = beside.outcome
        if other is not None and other.exhausted and not outcome.exhausted:
            return other
        if other is not None and other.error:
            notes = "; ".join(filter(None, (outcome.message, f"CP-SAT: {other.message}")))
            return Outcome(outcome.exhausted, notes, error=not outcome.exhausted)
        return outcome


class _Beside:
    """CP-SAT in a thread of its own, from some seconds after the start.

    The thread is not a daemon: native code that is still running when the interpreter ends would crash it.
    """

    def __init__(self, search: Search, head_start: float, over: threading.Event) -> None:
        self._search = search
        self._head_start = head_start
        self._over = over
        self._stop = threading.Event()
        self._limits = replace(search.limits, threads=search.limits.threads - 1, stop=self._stop)
        self._company = Company(self._work, "cpsat", daemon=False)

    @property
    def outcome(self) -> Outcome | None:
        """How it ended, if it has."""
        return outcome_of(self._company, self._limits)

    def start(self) -> None:
        self._company.start()

    def end(self) -> None:
        """Ask it to stop; it is left behind where it does not do so soon."""
        self._stop.set()
        self._company.join(GRACE)

    def _work(self) -> Outcome:
        if self._stop.wait(self._head_start) or self._search.done:
            return Outcome(False)
        from tilewright.solvers.mapping.cpsat import CpSat  # large; most searches end before it is needed

        outcome = CpSat().solve(Partner(self._search, self._limits, self._over))
        if outcome.exhausted:
            self._over.set()
        return outcome
