"""Ctrl-C and SIGTERM: the first asks for the incumbent, the second ends the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption(BaseException):
    """The user wants the process to end now."""


def interrupt_on_signals() -> None:
    """Let Ctrl-C and SIGTERM raise `Interruption` in the main thread."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interruption

    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, interrupt)


@contextmanager
def graceful_stop() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second raises `Interruption` in the main thread.

    The handlers that were there before come back at the end.  Outside the main thread, where handlers
    cannot be set, the event is never set by a signal.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise Interruption
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
