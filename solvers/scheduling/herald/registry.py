"""Scheduling methods by name, each loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from tilewright.formulation.scheduling.herald.search import ScheduleSearch

_METHODS: dict[str, tuple[str, str]] = {
    "cpsat": ("tilewright.solvers.scheduling.herald.cpsat", "CpSatScheduler"),
    "annealing": ("tilewright.solvers.scheduling.herald.quick", "AnnealingScheduler"),
    "lns": ("tilewright.solvers.scheduling.herald.quick", "WindowScheduler"),
    "herald": ("tilewright.solvers.scheduling.herald.quick", "HeraldScheduler"),
    "greedy": ("tilewright.solvers.scheduling.herald.quick", "GreedyScheduler"),
}


class Scheduler(Protocol):
    """A scheduling method."""

    name: str
    exact: bool

    @property
    def version(self) -> str:
        """Version of the underlying program."""

    def solve(self, search: ScheduleSearch) -> str:
        """Search until done; returns why there is no schedule, or an empty text."""


def method_names() -> list[str]:
    """All names, in the sequence in which they are shown."""
    return [*_METHODS]


def method(name: str) -> Scheduler:
    """The method of that name; raises ``KeyError``."""
    module, attribute = _METHODS[name]
    found: Scheduler = getattr(import_module(module), attribute)()
    return found
