"""Long passes of machine code that end when a search must.

Machine code holds no lock and asks nobody; it looks at a flag from step to step, which a thread beside it
sets once a limit has struck.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.foundation.arrays import Bytes

STEP = 0.05
"""Seconds between two looks at the limits."""


@contextmanager
def halting(limits: Limits | None) -> Iterator[Bytes]:
    """A flag, one number, other than 0 once the limits have struck; without limits it stays 0."""
    flag = np.zeros(1, dtype=np.uint8)
    if limits is None:
        yield flag
        return
    flag[0] = limits.expired
    over = threading.Event()

    def look() -> None:
        while not over.wait(STEP):
            if limits.expired:
                flag[0] = 1
                return

    thread = threading.Thread(target=look, name="limits", daemon=True)
    thread.start()
    try:
        yield flag
    finally:
        over.set()
        thread.join()


def check(limits: Limits | None, amid: Callable[[], str] | None = None) -> None:
    """Raise `LimitReachedError` once limits have struck; without limits, never.

    ``amid`` says what the plan is made of, for the message.
    """
    if limits is not None and limits.expired:
        made_of = "" if amid is None else f": {amid()}"
        raise LimitReachedError(f"a limit struck before a plan was complete{made_of}")
