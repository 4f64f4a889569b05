"""Work in a background thread; whatever ends it is kept for the caller.

An exception that leaves a thread's function is printed on the terminal and lost to the program.  Here it is
kept for whoever asked for the work: a limit that strikes in the middle is a quiet end, anything else is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.method import Outcome
from tilewright.foundation.errors import one_line

Answer = TypeVar("Answer")


class Background(Generic[Answer]):
    """One piece of work in a thread of its own.

    Parameters
    ----------
    work : what is done
    name : of the thread
    daemon : whether the interpreter may end while it runs; native code that still runs then would crash it

    Attributes
    ----------
    answer : what the work returned; ``None`` until then, and where it failed
    failure : the exception that ended it, of whatever kind
    """

    def __init__(self, work: Callable[[], Answer], name: str, *, daemon: bool = True) -> None:
        self.answer: Answer | None = None
        self.failure: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._caught, name=name, daemon=daemon)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for its end, no longer than that."""
        self._thread.join(seconds)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def raise_failure(self) -> None:
        """Raise here what ended the work there, if anything did."""
        if self.failure is not None:
            raise self.failure

    def _caught(self) -> None:
        try:
            self.answer = self._work()
        except BaseException as failure:
            self.failure = failure


def outcome_of(method: Background[Outcome]) -> Outcome | None:
    """How a method beside the caller's ended; ``None`` where it has not.

    A limit that struck in the middle is a quiet end, any other exception an error.
    """
    failure = method.failure
    if failure is None:
        return method.answer
    if isinstance(failure, LimitReachedError):
        return Outcome()
    return Outcome(message=failure_text(failure), error=True)


def failure_text(failure: BaseException) -> str:
    """An exception in one line."""
    name, text = type(failure).__name__, one_line(failure)
    return name if text == name else f"{name}: {text}"
