"""When the call began: time limits cover everything from here on."""

from __future__ import annotations

import time

from tilewright.foundation.loading import limit_loading


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

        That is when the call began; but start-up takes no more than half of the limit, so that even a second
        on a busy machine leaves time for a search.
        """
        return self.moment if seconds is None else max(self.moment, time.monotonic() - seconds / 2)


call = Clock()
