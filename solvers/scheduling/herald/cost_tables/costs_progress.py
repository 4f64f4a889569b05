"""How many layers' costs are known, for progress and for the message where a limit stops early."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE = 1.0  # seconds between two lines


class CostsProgress:
    """Receives every computed cost; reports progress at most once a second.

    Parameters
    ----------
    say : called with a line of text
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._done: tuple[int, int] | None = None
        self._last = 0.0

    def reported(self, done: int, total: int) -> None:
        """So many costs of layers under a dataflow have been computed, of all that were not known."""
        self._done = done, total
        now = time.monotonic()
        if done == total or now - self._last >= _PAUSE:
            self._last = now
            self._say(self.text)

    @property
    def text(self) -> str:
        """Such as ``costs of layers: 12 of 238 computed``."""
        if self._done is None:
            return "costs of layers"
        done, total = self._done
        return f"costs of layers: {done} of {total} computed"

    @property
    def stopped(self) -> str:
        """The message if the limit struck first."""
        return f"stopped while {self.text}; those are cached, and a further call continues from them"
