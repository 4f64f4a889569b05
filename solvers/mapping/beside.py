"""What looks for mappings beside a search that proves, in steps, for a share of its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tilewright.formulation.mapping.search import LayerSearch

SHARE = 0.25
"""Of the work of all else."""
_HEAD_START, _EARLY = 300_000, 1_000_000
"""Nodes of all else before the first step, where there is a mapping, and nodes beyond the share after it."""
CLOSE = 0.005
"""Gap up to which nothing is looked for: what is left to gain is found by what proves."""
_STATED, _FILLED = 100_000, 10
"""Nodes that a tree counts as, and bytes of its tables that count as one node."""


class Beside:
    """Steps beside a search, which are taken whenever they are behind.

    Work is counted in nodes, trees and tables, not in seconds, so that two searches take the same steps.

    Parameters
    ----------
    search : of the whole
    steps : each some milliseconds to some tens of them, where tiles are few
    """

    def __init__(self, search: LayerSearch, steps: Iterator[None]) -> None:
        self._search, self._steps = search, steps
        self._began, self._spent = self._counted, 0
        self._are_over = False

    @property
    def are_behind(self) -> bool:
        """Whether steps are left that have had less than their share of the work, and may gain much."""
        gap = self._search.gap
        if self._are_over or (gap is not None and gap <= CLOSE):
            return False
        others = self._counted - self._began - self._spent
        early = others if self._search.key is None else others - _HEAD_START
        return early > 0 and self._spent < min(early, _EARLY) + SHARE * others

    def begin(self, count: int) -> None:
        """Take some steps before all else; raises ``LimitReachedError`` where a limit strikes."""
        for _ in range(count):
            if self._are_over or self._search.done:
                break
            self._take()

    def keep_up(self) -> None:
        """Take steps until they are not behind; raises ``LimitReachedError`` where a limit strikes."""
        while self.are_behind and not self._search.done:
            self._take()

    def _take(self) -> None:
        with self.at_work():
            self._are_over = next(self._steps, self) is self

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What is done meanwhile counts as work of the steps."""
        before = self._counted
        try:
            yield
        finally:
            self._spent += self._counted - before

    def along(self, go_on: Callable[[Callable[[], bool]], float | None]) -> float | None:
        """Let a tree go on, and keep up with it.

        Parameters
        ----------
        go_on : searches until what it is given is over; returns the least key of what is open, if anything is
        """
        while True:
            least = go_on(lambda: self.are_behind)
            if least is None or not self.are_behind or self._search.done:
                return least
            self.keep_up()

    @property
    def _counted(self) -> int:
        """The work of the whole search so far, in nodes."""
        tally = self._search.tally
        return tally.nodes + _STATED * tally.trees + tally.table_bytes // _FILLED
