"""When a search stops: conditions that combine with ``|``; the first one that holds ends the search.

seconds(60) | gap(0.01) | stagnation(10)
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol


class Running(Protocol):
    """The part of a search that conditions look at."""

    @property
    def bound(self) -> Fraction | None:
        """Nothing has a smaller key."""

    @property
    def gap(self) -> float | None:
        """``(key - bound) / key``; ``None`` without both."""

    @property
    def improved_at(self) -> float | None:
        """Seconds after which the best answer was found; ``None`` without one."""


class Stop:
    """A condition; a new one is a subclass with ``holds``."""

    __slots__ = ()

    def holds(self, elapsed: float, search: Running | None) -> bool:
        """Whether to stop now.

        Parameters
        ----------
        elapsed : seconds since the call began
        search : ``None`` where none is at hand, as while a problem is laid out: then only what needs no
            search can hold
        """
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Stop, ...]:
        """The conditions that this one consists of."""
        return (self,)

    def __or__(self, other: Stop) -> Stop:
        return Either((*self.parts, *other.parts))


@dataclass(frozen=True, slots=True)
class Either(Stop):
    """The first of several conditions; of none, never."""

    conditions: tuple[Stop, ...] = ()

    def holds(self, elapsed: float, search: Running | None) -> bool:
        return any(condition.holds(elapsed, search) for condition in self.conditions)

    @property
    def parts(self) -> tuple[Stop, ...]:
        return self.conditions


@dataclass(frozen=True, slots=True)
class Seconds(Stop):
    """So much time has passed since the call began; model building counts."""

    seconds: float

    def holds(self, elapsed: float, search: Running | None) -> bool:
        return elapsed >= self.seconds


@dataclass(frozen=True, slots=True)
class Gap(Stop):
    """The relative gap is at most this."""

    gap: float

    def holds(self, elapsed: float, search: Running | None) -> bool:
        gap = None if search is None else search.gap
        return gap is not None and gap <= self.gap


@dataclass(frozen=True, slots=True)
class Stagnation(Stop):
    """So many seconds have passed since the best answer was found."""

    seconds: float

    def holds(self, elapsed: float, search: Running | None) -> bool:
        improved = None if search is None else search.improved_at
        return improved is not None and elapsed - improved >= self.seconds


@dataclass(frozen=True, slots=True)
class BoundReaches(Stop):
    """The bound has reached a key from which on the problem is of no interest."""

    key: Fraction

    def holds(self, elapsed: float, search: Running | None) -> bool:
        bound = None if search is None else search.bound
        return bound is not None and bound >= self.key


@dataclass(frozen=True, slots=True)
class WhenSet(Stop):
    """An event that somebody else sets."""

    event: threading.Event

    def holds(self, elapsed: float, search: Running | None) -> bool:
        return self.event.is_set()


NEVER = Either()


def seconds(number: float) -> Stop:
    """Stop after so many seconds."""
    return Seconds(number)


def gap(relative: float) -> Stop:
    """Stop once ``(value - bound) / value`` is at most this; 0.01 is one per cent."""
    return Gap(relative)


def stagnation(number: float) -> Stop:
    """Stop once so many seconds have brought nothing better."""
    return Stagnation(number)
