"""What a process leaves out at its beginning: half of a small call would go to it.  How it ends meanwhile."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from tilewright.foundation.garbage import AT_START, IN_SEARCH

_LEFT_OUT = {
    "OPENBLAS_NUM_THREADS": "1",  # numpy's threads for matrix products, which turn while they wait
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # looked for in the metadata of everything that is installed
}
_begun: list[bool] = []
LEAST_WIDTH = 40
"""Columns below which nothing is drawn; a narrower terminal breaks the lines itself."""


def begin() -> None:
    """Libraries leave out what is not used here, and hardly anybody looks for garbage where all is in use.

    What the environment says of libraries stands.
    """
    for name, value in _LEFT_OUT.items():
        os.environ.setdefault(name, value)
    _mend_width()
    gc.set_threshold(*AT_START)
    _begun[:] = [True]


def leave_on_signals() -> None:
    """Ctrl-C and SIGTERM end the process where it stands, which loads and has nothing else to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Say that the process was interrupted, and end it."""
    with suppress(OSError):
        os.write(2, b"tilewright: error: interrupted\n")
    os._exit(130)


def loads_modules(frame: FrameType | None) -> bool:
    """Whether a module is being loaded where a frame stands.

    An exception that a handler raises there may never arrive: modules written in C make an ``ImportError`` of
    it, print it, or lose it.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _mend_width() -> None:
    """Let ``COLUMNS`` be a width that all who read it can draw in; what is none is left out."""
    reported = os.environ.get("COLUMNS")
    if reported is not None:
        width = int(reported) if reported.isdecimal() and len(reported) < 6 else 0
        if width:
            os.environ["COLUMNS"] = str(max(LEAST_WIDTH, width))
        else:
            del os.environ["COLUMNS"]


def loaded() -> None:
    """What is there stays, and is looked at no more; only in a process that has begun as above."""
    if _begun:
        _begun.clear()
        gc.freeze()
        gc.set_threshold(*IN_SEARCH)
