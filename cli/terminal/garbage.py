"""When Python looks for garbage: otherwise a tenth of a start goes to it, where nothing is garbage yet."""

from __future__ import annotations

import gc

_AT_START, _IN_SEARCH = (50_000, 10, 10), (10_000, 10, 10)
_starting: list[bool] = []


def rarely() -> None:
    """The process begins: what is loaded stays."""
    _starting[:] = [True]
    gc.set_threshold(*_AT_START)


def from_now_on() -> None:
    """What is there stays, and is looked at no more; only where the process began with `rarely`."""
    if _starting:
        _starting.clear()
        gc.freeze()
        gc.set_threshold(*_IN_SEARCH)
