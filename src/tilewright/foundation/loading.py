"""How long a call may read and import: one deadline, which every reader checks.

A search that has begun has a limit of its own; the deadline is lifted then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tilewright.foundation.errors import BudgetError, ReadingLimitError

GRACE = 0.5
"""Seconds that a file has at any rate, whatever was done before: a call may end a second after its limit."""
LEAST = 0.05
"""The same for each further one: what begins late has half as long as the one before, but no less."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    moment: float
    seconds: float
    grace: float = GRACE


_deadline: ContextVar[_Deadline | None] = ContextVar("deadline of loading", default=None)


def limit_loading(seconds: float | None, since: float | None = None) -> None:
    """Everything that is read from now on counts under a limit; ``None`` lifts it.

    Parameters
    ----------
    seconds : the limit of the whole call
    since : when the call began, on the monotonic clock; by default now
    """
    if seconds is None:
        _deadline.set(None)
    else:
        _deadline.set(_Deadline((time.monotonic() if since is None else since) + seconds, seconds))


@contextmanager
def loading_within(seconds: float | None) -> Iterator[None]:
    """What is read inside counts under a limit; a limit that is there already stays where it is sooner."""
    outer = _deadline.get()
    token = _deadline.set(outer)
    try:
        if seconds is not None and seconds < remaining():
            limit_loading(seconds)
        yield
    finally:
        _deadline.reset(token)


def begin_reading() -> None:
    """A file is read from here on: even where the limit is reached it has `GRACE`, or what is left of it."""
    deadline = _deadline.get()
    if deadline is not None and remaining() < deadline.grace:
        late = time.monotonic() + deadline.grace
        _deadline.set(_Deadline(late, deadline.seconds, max(deadline.grace / 2, LEAST)))


def remaining() -> float:
    """Seconds that are left for loading; infinite without a limit."""
    deadline = _deadline.get()
    return math.inf if deadline is None else deadline.moment - time.monotonic()


def check_limit(where: str, field: str | None = None) -> None:
    """Raise ``ReadingLimitError`` where no time is left to go on reading a file."""
    if remaining() <= 0:
        raise too_slow(where, field)


def too_slow(where: str, field: str | None = None) -> ReadingLimitError:
    """The error of a file that cannot be read within the limit."""
    deadline = _deadline.get()
    limit = "" if deadline is None else f" of {deadline.seconds:g} s"
    return ReadingLimitError(where, field, f"takes longer to read than the time limit{limit}")


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Let a limit that strikes inside name this file."""
    try:
        yield
    except BudgetError as error:
        raise type(error)(where, error.field, error.message) from None
