"""Arguments of the interface: errors that name them, and what stops a search."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.stopping import NEVER, Either, Gap, Seconds, Stop
from tilewright.foundation.errors import InputError, names_flags
from tilewright.foundation.interrupts import stop_on_signals
from tilewright.foundation.processes import available_cores

if TYPE_CHECKING:
    from tilewright.api.live import Listener

_ARGUMENTS = {
    "--solver": "method",
    "--method": "method",
    "--constraint": "constraints",
    "--layers": "layers",
    "--class": "resources",
    "--dim": "dims",
    "--skip-unsupported": "skip",
    "--stored-widths": "stored_widths",
    "--branch": "branches",
    "--trip": "trips",
}
"""Arguments of functions whose names are not those of the command line's flags."""


@contextmanager
def named_arguments() -> Iterator[None]:
    """Let an ``InputError`` about a flag name the argument instead, unless the command line asks."""
    try:
        yield
    except InputError as error:
        if names_flags.get() or not error.where.startswith("--"):
            raise
        name = _ARGUMENTS.get(error.where, error.where.removeprefix("--").replace("-", "_"))
        raise InputError(name, error.field, error.message) from None


@dataclass(frozen=True)
class Budget:
    """What a call may use, read from its arguments.

    Parameters
    ----------
    seconds : for the whole call; ``None`` for no limit
    gap : relative, between value and bound as they are shown
    until : further conditions, each for every search of the call
    threads, seed : of the methods
    """

    seconds: float | None
    gap: float
    until: Stop
    threads: int
    seed: int
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class SearchRequest:
    """How a question is to be answered: the arguments of `solve`, which explains them.

    Parameters
    ----------
    stop : set by the user to end the search with what is known
    warm_starts : as they were given; each kind of question reads its own
    listeners : of the live document
    tracebacks : whether listeners get the traceback of an exception that ended a search
    """

    method: str | None
    budget: Budget
    stop: threading.Event
    warm_starts: Any = ()
    deterministic: bool = False
    listeners: Sequence[Listener] = ()
    tracebacks: bool = False

    def limits(self, *, gap: float | None = None) -> Limits:
        """Those of one search that has the whole budget.

        Parameters
        ----------
        gap : between keys; by default that between values, of which they are no powers then
        """
        budget = self.budget
        return Limits(
            seconds=budget.seconds,
            gap=budget.gap if gap is None else gap,
            threads=budget.threads,
            seed=budget.seed,
            deterministic=self.deterministic,
            stop=self.stop,
            started=budget.started,
            until=budget.until,
        )


def seconds_of(stop: Stop | None) -> float | None:
    """The shortest time limit among the conditions; ``None`` without one."""
    times = [part.seconds for part in (() if stop is None else stop.parts) if isinstance(part, Seconds)]
    return min(times, default=None)


def read_budget(stop: Stop | None, threads: int | None, seed: int) -> Budget:
    """The budget that arguments stand for.

    Raises
    ------
    InputError : for a time that is not above 0, a gap outside ``[0, 1)``, no threads or a negative seed
    """
    parts: Sequence[Stop] = () if stop is None else stop.parts
    times = [part.seconds for part in parts if isinstance(part, Seconds)]
    gaps = [part.gap for part in parts if isinstance(part, Gap)]
    for number in times:
        if not 0 < number < 1e9:
            raise InputError("stop", "seconds", f"expected a time above 0, got {number}")
    for number in gaps:
        if not 0 <= number < 1:
            raise InputError("stop", "gap", f"expected a gap such as 0.01, below 1, got {number}")
    if threads is not None and threads < 1:
        raise InputError("threads", None, f"expected at least 1, got {threads}")
    if seed < 0:
        raise InputError("seed", None, f"expected at least 0, got {seed}")
    others = tuple(part for part in parts if not isinstance(part, Seconds | Gap))
    return Budget(
        seconds=min(times, default=None),
        gap=max(gaps, default=0.0),
        until=Either(others) if others else NEVER,
        threads=threads or available_cores(),
        seed=seed,
    )


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that a search returns what it has; a second one is a `KeyboardInterrupt`.

    A program that handles the signal itself keeps its handler, and the event is never set.
    """
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with stop_on_signals([signal.SIGINT] if own else [], KeyboardInterrupt) as stop:
        yield stop
