"""Work in a separate thread, so that signals and limits can always end the wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tilewright.formulation.limits import Limits
from tilewright.foundation.garbage import seldom_collected
from tilewright.solvers.background import Background

_STEP = 0.05
_GRACE = 1.5
"""Seconds that work has to come back once it is asked to stop."""

Answer = TypeVar("Answer")


class Watched(Generic[Answer]):
    """Work that is running or has ended.

    Parameters
    ----------
    work : what is done; it should respect the limits
    limits : work that does not end shortly after they strike is left behind
    grace : seconds that it has to come back once it is asked to stop

    Attributes
    ----------
    answer : what the work returned; ``None`` until then, and where it failed or was left behind
    failure : the exception that ended it
    abandoned : whether it was left behind
    """

    def __init__(
        self, work: Callable[[], Answer], limits: Limits, name: str = "search", grace: float | None = None
    ) -> None:
        self.answer: Answer | None = None
        self.abandoned = False
        self._thread = Background(work, name)
        self._limits = limits
        self._longest = _GRACE if grace is None else grace

    def run(self) -> None:
        """Work, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        Interruption : at a second signal
        """
        with seldom_collected():
            self._run()

    def _run(self) -> None:
        thread = self._thread
        thread.start()
        since: float | None = None
        while thread.is_alive and not self.abandoned:
            thread.join(_STEP)
            if not self._limits.expired:
                since = None
            elif since is None:
                since = self._limits.clock()
            else:
                self.abandoned = self._limits.clock() - since > self._grace
        if not self.abandoned:
            self.answer = thread.answer

    @property
    def failure(self) -> BaseException | None:
        return self._thread.failure

    @property
    def _grace(self) -> float:
        if self._limits.stop.is_set() or self._limits.seconds is None:
            return self._longest
        return 0.8 * max(1.0, 0.05 * self._limits.seconds)
