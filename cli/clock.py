"""When the call began: time limits cover everything from here on."""

from __future__ import annotations

import time


class Clock:
    """Seconds since the call began."""

    def __init__(self) -> None:
        self.moment = time.monotonic()

    def restart(self) -> None:
        self.moment = time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.moment


call = Clock()
