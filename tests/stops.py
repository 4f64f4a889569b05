"""Limits that strike after so many looks at them, the same in every run."""

from __future__ import annotations

from tilewright.formulation.stopping import Stop


class AfterChecks(Stop):
    """Ends a search after so many looks at its limits."""

    def __init__(self, most: int) -> None:
        self.left = most

    def holds(self, elapsed: float, search: object) -> bool:
        self.left -= 1
        return self.left < 0
