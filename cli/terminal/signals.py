"""Ctrl-C, SIGTERM and SIGHUP: the first asks for the incumbent, the second ends the process.

A terminal that goes away sends SIGHUP more than once, and service managers send it right after SIGTERM; so it
never counts as the second.  A process that was started to ignore it (``nohup``) ignores it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tilewright.cli.terminal import beginning
from tilewright.foundation.interrupts import stop_on_signals
from tilewright.foundation.loading import limit_loading

_HANGUP = getattr(signal, "SIGHUP", None)  # not everywhere


class Interruption(BaseException):
    """The user wants the process to end now."""


def interrupt_on_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP raise `Interruption` in the main thread, or end a process that loads."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if beginning.loads_modules(frame):
            beginning.leave(number, frame)
        raise Interruption

    if threading.current_thread() is threading.main_thread():
        for number in checked_limits():
            signal.signal(number, interrupt)


def ignore_signals() -> None:
    """Nothing is left to be interrupted."""
    if threading.current_thread() is threading.main_thread():
        for number in checked_limits():
            signal.signal(number, signal.SIG_IGN)


def checked_limits() -> list[signal.Signals]:
    """The signals that ask for an end."""
    signals = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        signals.append(_HANGUP)
    return signals


@contextmanager
def graceful_stop() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second raises `Interruption` in the main thread.

    What has been loaded until here is taken for permanent; a limit counts for the search from here on.
    """
    beginning.loaded()
    limit_loading(None)
    again = [] if _HANGUP is None else [_HANGUP]
    with stop_on_signals(checked_limits(), Interruption, again) as stop:
        yield stop
