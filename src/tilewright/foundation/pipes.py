"""Pipes read with an end to all waiting: for somebody who writes, and for what is written."""

from __future__ import annotations

import os
import select
import time

from tilewright.foundation.errors import InputError
from tilewright.foundation.loading import check_limit

PATIENCE = 5.0
"""Seconds that a pipe may stay without a writer, or a reader."""
_TICK = 0.05


class Pipe:
    """A pipe that is open for reading and does not block.

    Parameters
    ----------
    handle : its descriptor
    where : how messages name it
    """

    def __init__(self, handle: int, where: str) -> None:
        self._handle, self._where = handle, where
        self._poll = select.poll()
        self._poll.register(handle, select.POLLIN)
        self._patience = time.monotonic() + PATIENCE

    def read(self, size: int) -> bytes:
        """Some bytes; none at the end.

        Raises
        ------
        InputError : where nobody writes within seconds, and where the limit of the call is reached
        """
        while True:
            check_limit(self._where)
            events = self._poll.poll(_TICK * 1000)
            if events:
                return os.read(self._handle, size) if events[0][1] & select.POLLIN else b""
            try:
                part = os.read(self._handle, size)  # empty: nobody has it open for writing
            except BlockingIOError:
                continue
            if part:
                return part
            if time.monotonic() > self._patience:
                message = f"cannot be read: a pipe that nobody has written to for {PATIENCE:g} s"
                raise InputError(self._where, None, message)
            time.sleep(_TICK)
