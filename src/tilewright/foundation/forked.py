"""Copies of this process, made in a moment, that work and send what they have done.

A copy has all that its parent had loaded and compiled, and an interpreter's lock of its own.  It prints
nothing, ends once nobody reads what it sends, and leaves a terminal's Ctrl-C to its parent.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

_HEAD = 8  # bytes of a message's length
_CHUNK = 1 << 16

Message = TypeVar("Message")
Send = Callable[[Message], None]


def can_fork() -> bool:
    """Whether a copy is safe: no other thread holds a lock that would stay closed in it."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked(Generic[Message]):
    """A copy of this process at work.

    Parameters
    ----------
    work : done by the copy, which then ends; is given what sends a message, which can be pickled

    Raises
    ------
    OSError : where the system has no room for one more process
    """

    def __init__(self, work: Callable[[Send[Message]], None]) -> None:
        self._messages, writing = os.pipe()
        self._received = bytearray()
        with warnings.catch_warnings():
            # Native threads of libraries are idle here; `can_fork` has looked for Python's own.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                self._process = os.fork()
            except OSError:
                os.close(self._messages)
                os.close(writing)
                raise
        if self._process == 0:
            _work_and_end(work, self._messages, writing)
        os.close(writing)
        self.is_over = False
        """Whether it has ended, and all that it sent was read."""

    def fileno(self) -> int:
        """What `select` waits for."""
        return self._messages

    def received(self) -> list[Message]:
        """Messages that are there; waits for the rest of none."""
        while select.select([self._messages], [], [], 0)[0]:
            part = os.read(self._messages, _CHUNK)
            if not part:
                self.is_over = True
                break
            self._received += part
        messages: list[Message] = []
        while (end := _HEAD + int.from_bytes(self._received[:_HEAD])) <= len(self._received) >= _HEAD:
            messages.append(pickle.loads(self._received[_HEAD:end]))
            del self._received[:end]
        return messages

    def end(self) -> None:
        """End it, whatever it does.

        Where the calling program ignores the ends of its processes, or waits for all of them itself, nothing
        may be left of it, and its number may be another one's.
        """
        os.close(self._messages)
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(self._process, os.WNOHANG)[0] != self._process:
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)


def wait_for(copies: list[Forked[Message]], seconds: float) -> None:
    """Wait until one of them has sent something or ended, or the time is over."""
    if copies:
        select.select(copies, [], [], seconds)
    else:
        time.sleep(seconds)


def _work_and_end(work: Callable[[Send[Message]], None], reading: int, writing: int) -> NoReturn:
    """The copy's life: what the parent does at its exit and with its files is not done here."""
    code = 1
    try:
        gc.freeze()  # what was there before is not looked at, so that it stays shared
        for name in (signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)

        def send(message: Message) -> None:
            body = pickle.dumps(message)
            data = memoryview(len(body).to_bytes(_HEAD) + body)
            while data:
                data = data[os.write(writing, data) :]

        work(send)
        code = 0
    finally:
        os._exit(code)
