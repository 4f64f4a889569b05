"""What a search took: nodes, trees, tables and seconds of every method that was at work in it, and memory.

A method is at work (:meth:`EffortLog.at_work`) in the thread that runs it; what it counts meanwhile is its
own.  Counts do not depend on the clock, so two deterministic searches have equal ones.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MethodEffort:
    """The effort of one method in one search.

    Parameters
    ----------
    method : as traces name it
    nodes : partial mappings that it has bounded, or mappings that it has scored
    trees : searches of partial mappings that it has begun, those of parts of the energy among them
    table_bytes : of all tables that bounds are read from; arrays that several trees read count once
    seconds : for which it was at work, without those of methods that it called
    """

    method: str
    nodes: int = 0
    trees: int = 0
    table_bytes: int = 0
    seconds: float = 0.0

    @property
    def nodes_per_second(self) -> float | None:
        """``None`` where nothing was counted, or nothing took time."""
        return self.nodes / self.seconds if self.nodes and self.seconds > 0 else None


@dataclass(frozen=True, slots=True)
class Effort:
    """The effort of one search.

    Parameters
    ----------
    methods : in the order in which they began
    peak_memory_bytes : most that the process held in memory until the search ended; 0 where unknown
    """

    methods: tuple[MethodEffort, ...] = ()
    peak_memory_bytes: int = 0

    @property
    def nodes(self) -> int:
        """Of all methods."""
        return sum(method.nodes for method in self.methods)

    @property
    def trees(self) -> int:
        """Of all methods."""
        return sum(method.trees for method in self.methods)

    @property
    def table_bytes(self) -> int:
        """Of all methods."""
        return sum(method.table_bytes for method in self.methods)

    @property
    def nodes_per_second(self) -> float | None:
        """Of all methods that count nodes, by the seconds for which they were at work."""
        seconds = sum(method.seconds for method in self.methods if method.nodes)
        return self.nodes / seconds if self.nodes and seconds > 0 else None


class Tally:
    """The counters of a method at work, which one thread raises."""

    __slots__ = ("nodes", "seconds", "since", "table_bytes", "trees")

    def __init__(self) -> None:
        self.nodes = self.trees = self.table_bytes = 0
        self.seconds = 0.0
        self.since: float | None = None  # the clock when it began or went on; ``None`` while it rests


class EffortLog:
    """The tallies of one search and of the searches of its parts."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._earlier: dict[str, MethodEffort] = {}
        self._earlier_memory = 0
        self._local = threading.local()

    @contextmanager
    def at_work(self, method: str, clock: Callable[[], float]) -> Iterator[Tally]:
        """A method works in this thread; one that called it rests meanwhile."""
        outer: Tally | None = getattr(self._local, "tally", None)
        tally = self._tallies.setdefault(method, Tally())
        if tally is outer:
            yield tally
            return
        began = clock()
        if outer is not None and outer.since is not None:
            outer.seconds += began - outer.since
            outer.since = None
        tally.since = began
        self._local.tally = tally
        try:
            yield tally
        finally:
            ended = clock()
            tally.seconds += ended - (ended if tally.since is None else tally.since)
            tally.since = None
            self._local.tally = outer
            if outer is not None:
                outer.since = ended

    @property
    def tally(self) -> Tally:
        """That of the method at work in this thread; one that nobody reads where there is none."""
        tally: Tally | None = getattr(self._local, "tally", None)
        return Tally() if tally is None else tally

    def add(self, earlier: Effort) -> None:
        """Count on from an earlier search."""
        self._earlier = {method.method: method for method in earlier.methods}
        self._earlier_memory = earlier.peak_memory_bytes

    def effort(self, now: float) -> Effort:
        """What has been counted; may be asked for from any thread.

        Parameters
        ----------
        now : what the clock says, for methods that are still at work
        """
        rows = []
        tallies = dict(self._tallies)
        for name in dict.fromkeys([*self._earlier, *tallies]):
            earlier, tally = self._earlier.get(name, MethodEffort(name)), tallies.get(name, Tally())
            since = tally.since
            rows.append(
                MethodEffort(
                    name,
                    earlier.nodes + tally.nodes,
                    earlier.trees + tally.trees,
                    earlier.table_bytes + tally.table_bytes,
                    earlier.seconds + tally.seconds + (0.0 if since is None else max(0.0, now - since)),
                )
            )
        return Effort(tuple(rows), max(self._earlier_memory, peak_memory()))


def peak_memory() -> int:
    """Bytes that this process has held in memory at most; 0 where the system does not tell."""
    with suppress(ImportError, OSError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak  # kilobytes elsewhere
    return 0
