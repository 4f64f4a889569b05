"""Looking for garbage seldom: almost all is in use while modules load or anything is searched."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

Thresholds = tuple[int, int, int]
"""Objects made between two looks, and looks before one that goes further, as for `gc.set_threshold`."""

AT_START: Thresholds = (500_000, 10, 10)
IN_SEARCH: Thresholds = (200_000, 10, 10)

_lock = threading.Lock()
_before: list[Thresholds] = []
"""The thresholds that each search in progress came upon, the first search's first."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look seldom while anything is searched; at the end of the last search what was set comes back.

    A process that looks still more seldom, or never, stays with that.
    """
    with _lock:
        _before.append(gc.get_threshold())
        if 0 < _before[0][0] < IN_SEARCH[0]:
            gc.set_threshold(*IN_SEARCH)
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
