"""The command line as it was called, which reports show."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

PROGRAM = "tilewright"


class Command:
    """The words behind the program's name."""

    def __init__(self) -> None:
        self._words: tuple[str, ...] = ()

    def begin(self, words: Sequence[str]) -> None:
        """A call with these words begins."""
        self._words = tuple(words)

    @property
    def text(self) -> str:
        """The line, to be pasted into a shell."""
        return shlex.join([PROGRAM, *self._words])


command = Command()
