"""Work in a thread of its own, so that signals and limits end it whatever it does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tilewright.formulation.limits import Limits

_STEP = 0.05
_GRACE = 1.5
"""Seconds that work has to come back once it is asked to stop."""

Answer = TypeVar("Answer")


class Watched(Generic[Answer]):
    """Work that is running or has ended.

    Parameters
    ----------
    work : what is done; it should heed the limits
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
        self.failure: BaseException | None = None
        self.abandoned = False
        self._work = work
        self._limits = limits
        self._name = name
        self._longest = _GRACE if grace is None else grace

    def run(self) -> None:
        """Work, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        Interruption : at a second signal
        """
        thread = threading.Thread(target=self._caught, name=self._name, daemon=True)
        thread.start()
        late = 0.0
        while thread.is_alive() and not self.abandoned:
            thread.join(_STEP)
            late = late + _STEP if self._limits.expired else 0.0
            self.abandoned = late > self._grace

    @property
    def _grace(self) -> float:
        if self._limits.stop.is_set() or self._limits.seconds is None:
            return self._longest
        return 0.8 * max(1.0, 0.05 * self._limits.seconds)

    def _caught(self) -> None:
        try:
            answer = self._work()
        except BaseException as failure:
            self.failure = failure
        else:
            if not self.abandoned:
                self.answer = answer
