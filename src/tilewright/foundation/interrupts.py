"""Signals that ask a search for what it has."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType

_TOGETHER = 0.2
"""Seconds in which signals are one: ``timeout`` sends its own to a process, then to the process's group."""


@contextmanager
def stop_on_signals(
    numbers: Collection[int], second: type[BaseException], again: Collection[int] = ()
) -> Iterator[threading.Event]:
    """An event that the first signal sets; the second raises an exception in the main thread.

    The handlers that were there before come back at the end.  Outside the main thread, where handlers
    cannot be set, the event is never set by a signal.

    Parameters
    ----------
    numbers : the signals
    second : raised at the second one
    again : those of them that never count as the second
    """
    stop, first = threading.Event(), -math.inf

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not stop.is_set():
            first = time.monotonic()
            stop.set()
        elif number not in again and time.monotonic() - first > _TOGETHER:
            raise second

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
