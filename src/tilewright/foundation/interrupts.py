"""Signals that ask a search for what it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType


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
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number not in again:
            raise second
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
