"""Long passes of machine code that end when a search must.

Machine code holds no lock and asks nobody; it looks at a flag from step to step, which a thread beside it
sets once a limit has struck.  A small network is planned in hundreds of short passes, so that one thread
looks at the limits of all passes under way, and ends where it sees none.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.foundation.arrays import Bytes

STEP = 0.05
"""Seconds between two looks at the limits."""

WATCH = "limits"
"""Name of the thread that looks at them."""


class _Watch:
    """The thread that looks at the limits of passes, begun when there is one to look at."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all passes and the thread, as a process that was forked has neither."""
        self._lock = threading.Lock()
        self._passes: dict[int, tuple[Limits, Bytes]] = {}
        self._thread: threading.Thread | None = None

    def begin(self, limits: Limits, flag: Bytes) -> None:
        """Set a flag once limits have struck, until `end`."""
        with self._lock:
            self._passes[id(flag)] = limits, flag
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name=WATCH, daemon=True)
                self._thread.start()

    def end(self, flag: Bytes) -> None:
        """Look at these limits no more."""
        with self._lock:
            self._passes.pop(id(flag), None)

    def _look(self) -> None:
        while True:
            time.sleep(STEP)
            with self._lock:
                if not self._passes:
                    self._thread = None
                    return
                for limits, flag in self._passes.values():
                    flag[0] |= limits.expired


_WATCH = _Watch()
os.register_at_fork(after_in_child=_WATCH.reset)


@contextmanager
def halting(limits: Limits | None) -> Iterator[Bytes]:
    """A flag, one number, other than 0 once the limits have struck; without limits it stays 0."""
    flag = np.zeros(1, dtype=np.uint8)
    if limits is None:
        yield flag
        return
    flag[0] = limits.expired
    _WATCH.begin(limits, flag)
    try:
        yield flag
    finally:
        _WATCH.end(flag)


def check(limits: Limits | None, amid: Callable[[], str] | None = None) -> None:
    """Raise `LimitReachedError` once limits have struck; without limits, never.

    ``amid`` says what the plan is made of, for the message.
    """
    if limits is not None and limits.expired:
        made_of = "" if amid is None else f": {amid()}"
        raise LimitReachedError(f"a limit struck before a plan was complete{made_of}")
