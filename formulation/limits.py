"""The limits of a search: time, gap, threads, seed, and the signal to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isnan, nan

from tilewright.formulation.stopping import NEVER, Either, Gap, Running, Seconds, Stop
from tilewright.foundation.errors import TilewrightError


class LimitReachedError(TilewrightError):
    """A limit struck within something of which a part is of no use, such as laying out a problem."""


class TablesTooLargeError(LimitReachedError):
    """Rows of tiles, or the tables of a bound program, take more memory than a search may use."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop, and with which resources to search.

    Parameters
    ----------
    seconds : for the whole call from the moment that ``started`` was taken; ``None`` for no limit
    gap : stop once the relative gap is at most this
    threads : workers of a parallel solver
    seed : of every random choice
    deterministic : whether two runs must give the same answer and trace
    stop : set by the user to end the search with what it has, which is then ``interrupted``
    until : further conditions that end the search
    started : what the clock said when the call began; by default now
    clock : what seconds are read from; `time.process_time` gives each search the same time of the processor,
        however busy the machine is
    """

    seconds: float | None = None
    gap: float = 0.0
    threads: int = 2
    seed: int = 0
    deterministic: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = nan
    until: Stop = NEVER
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if isnan(self.started):
            object.__setattr__(self, "started", self.clock())

    @property
    def elapsed(self) -> float:
        return self.clock() - self.started

    @property
    def remaining(self) -> float | None:
        """Seconds left, at least 0; ``None`` for no limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        """Whether the search must end now, whatever it has found."""
        return self.ends(None)

    def ends(self, search: Running | None) -> bool:
        """Whether a search must end now; the gap that is asked for is the search's own affair."""
        elapsed = self.clock() - self.started
        return (
            self.stop.is_set()
            or (self.seconds is not None and elapsed >= self.seconds)
            or (self.until is not NEVER and self.until.holds(elapsed, search))
        )

    def check(self) -> None:
        """Between steps that cannot be stopped: raise `LimitReachedError` once the search must end."""
        if self.ends(None):
            reason = "interrupted" if self.stop.is_set() else "time limit reached"
            raise LimitReachedError(f"{reason} while building the model")

    def stopping(self, stop: Stop) -> Limits:
        """The same resources, and one more reason to stop.

        Seconds and gaps become the limits' own, so that methods can plan with them: the fewest seconds and
        the largest gap count.
        """
        seconds, gap, others = self.seconds, self.gap, list(self.until.parts)
        for part in stop.parts:
            if isinstance(part, Seconds):
                seconds = part.seconds if seconds is None else min(seconds, part.seconds)
            elif isinstance(part, Gap):
                gap = max(gap, part.gap)
            else:
                others.append(part)
        return replace(self, seconds=seconds, gap=gap, until=Either(tuple(others)))

    def share(self, fraction: float = 1.0, longest: float | None = None) -> Limits:
        """Limits of one of several searches: a fraction of the time that is left.

        Parameters
        ----------
        fraction : of the time that is left; ``1 / n`` for the next of n equal searches
        longest : seconds at most, whatever is left; without a limit, exactly these
        """
        remaining = self.remaining
        if remaining is None:
            return self if longest is None else replace(self, seconds=self.elapsed + longest)
        granted = remaining * fraction
        return replace(self, seconds=self.elapsed + (granted if longest is None else min(granted, longest)))

    def part(self, fraction: float, longest: float) -> Limits:
        """Limits of a part of a search: as of :meth:`share`; deterministic ones count no seconds.

        Parameters
        ----------
        fraction : of the time that is left
        longest : seconds at most, which depend on the machine
        """
        return self.share(fraction, None if self.deterministic else longest)
