"""What worker processes have in common, and how they are started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def shielded() -> Iterator[None]:
    """Processes and threads that are started here get no signal of the terminal's from the first moment.

    A terminal sends Ctrl-C to all processes of a call; one that is still loading would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _terminal())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _terminal() -> list[signal.Signals]:
    names = ("SIGINT", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]
