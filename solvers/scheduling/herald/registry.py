"""Scheduling methods by name, each loaded when it is asked for."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, Protocol

from tilewright.formulation.method import parse_method
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.heuristics.options import options_text, with_options
from tilewright.workloads.errors import InputError, unknown_name

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


def method(text: str, flag: str = "--method") -> Scheduler:
    """The method of a text such as ``cpsat`` or ``herald[order=depth-first,unbalance=1.5]``.

    Raises
    ------
    InputError : for an unknown name or option, or a value that an option cannot have
    """
    read = parse_method(text, flag)
    if read.name not in _METHODS:
        raise InputError(flag, None, unknown_name(read.name, _METHODS))
    made = _loaded(read.name)
    takes_options = is_dataclass(made)
    if not takes_options and read.options:
        raise InputError(flag, text, f"{read.name} takes no options")
    found: Scheduler = with_options(made, read, flag) if takes_options else made()
    return found


def method_options(name: str) -> str:
    """The options of a method with defaults and meanings, in one line; raises ``KeyError``."""
    made = _loaded(name)
    return options_text(made) if is_dataclass(made) else ""


def _loaded(name: str) -> type[Any]:
    module, attribute = _METHODS[name]
    found: type[Any] = getattr(import_module(module), attribute)
    return found
