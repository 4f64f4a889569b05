"""When the call began: time limits cover everything from here on."""

from __future__ import annotations

import time

from tilewright.foundation.loading import limit_loading

SEARCH = 0.3
"""Seconds of a search at any rate, or half of a shorter limit: a call may end a second after its limit."""


class Clock:
    """Seconds since the call began."""

    def __init__(self) -> None:
        self.moment = time.monotonic()

    def restart(self) -> None:
        self.moment = time.monotonic()
        limit_loading(None)

    def limit(self, seconds: float | None) -> None:
        """Let everything that is read until a search begins count under the limit of the call."""
        limit_loading(seconds, since=self.moment)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.moment

    def limit_from(self, seconds: float | None) -> float:
        """The moment from which a limit counts for what is searched from now on.

        That is when the call began; but `SEARCH` is left to the search, however long start-up took.
        """
        if seconds is None:
            return self.moment
        return max(self.moment, time.monotonic() + min(seconds / 2, SEARCH) - seconds)


call = Clock()
