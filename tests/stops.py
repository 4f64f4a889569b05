"""Limits that strike after so many looks at them, the same in every run, and searches that look often."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from tilewright.formulation.stopping import Stop
from tilewright.solvers.mapping.tree import descent


class AfterChecks(Stop):
    """Ends a search after so many looks at its limits."""

    def __init__(self, most: int) -> None:
        self.left = most

    def holds(self, elapsed: float, search: object) -> bool:
        self.left -= 1
        return self.left < 0


def in_blocks_of(nodes: int) -> AbstractContextManager[Any]:
    """Searches that bound so few nodes between two looks at what they may: small ones end early, too."""
    return mock.patch.multiple(descent, _WORK=0, _LEAST_BLOCK=nodes)
