"""Errors in what a user hands over (a text, a file, a name or a number), and in files that are written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_WHERE, _FIELD, _MESSAGE, _WORD = 500, 250, 4000, 120
_LONG = re.compile(rf"'[^']{{{_WORD},}}'|\"[^\"]{{{_WORD},}}\"|\S{{{_WORD},}}")


def shortened(text: str, limit: int = _MESSAGE) -> str:
    """A text for messages: what it quotes, its words and itself are cut in the middle where they are long.

    Parameters
    ----------
    limit : characters of the whole
    """
    return _cut(_LONG.sub(lambda match: _cut(match[0], _WORD), text), limit)


def _cut(text: str, limit: int) -> str:
    """The beginning and the end, with a sign between them for the rest."""
    return text if len(text) <= limit else f"{text[: limit * 3 // 4 - 1]}…{text[-(limit // 4) :]}"


names_flags: ContextVar[bool] = ContextVar("whether errors name the flags of the command line", default=False)
"""Set while a verb runs: what the Python interface calls arguments are flags there."""


class TilewrightError(Exception):
    """Base of all errors that this package raises for its users; ``docs/python.md`` has the tree."""


class InputError(TilewrightError, ValueError):
    """Bad input, reported in one line: ``where: field: message``.

    Parameters
    ----------
    where : the text, file or builder that the input came from
    field : the field (or node, or position) at fault; ``None`` where it is the whole input
    message : what was found and what was expected
    """

    def __init__(self, where: str, field: str | None, message: str) -> None:
        super().__init__(where, field, message)
        self.where = where
        self.field = field
        self.message = message

    def __str__(self) -> str:
        where, message = _cut(self.where, _WHERE), shortened(self.message)
        parts = [where, message] if self.field is None else [where, _cut(self.field, _FIELD), message]
        return " ".join(": ".join(parts).split())


class BudgetError(InputError):
    """Input that asks for more time or memory than it may; unlike what is not supported, never left out."""


class ReadingLimitError(BudgetError):
    """Input that is not read when the time limit of the call strikes: there was no time for an answer."""


class OutputError(TilewrightError):
    """A file that could not be written, reported in one line: ``path: cannot be written: reason``.

    Parameters
    ----------
    path : the file, or how messages call the stream
    reason : what went wrong
    """

    def __init__(self, path: Path | str, reason: BaseException) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        text = self.reason.strerror if isinstance(self.reason, OSError) else None
        return f"{_cut(str(self.path), _WHERE)}: cannot be written: {text or one_line(self.reason)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``", did you mean 'x'?"`` for the known name nearest to ``name``, or an empty string.

    Case is ignored in the comparison, so that ``k`` finds ``K``.
    """
    by_folded = {candidate.casefold(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f", did you mean {by_folded[nearest[0]]!r}?" if nearest else ""


_MANY = 16


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Message for a name that is not among the known ones: the nearest one; the list unless it is long."""
    candidates = list(known)
    nearest = did_you_mean(name, candidates)
    if nearest and len(candidates) > _MANY:
        return f"unknown name {name!r}{nearest} (one of {len(candidates)})"
    listed = ", ".join(candidates) if candidates else "nothing"
    return f"unknown name {name!r}{nearest} (expected one of: {listed})"


def one_line(error: BaseException, limit: int = 300) -> str:
    """The text of another library's exception on one line, cut at ``limit`` characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


@contextmanager
def located_in(path: str, others: Collection[str] = ()) -> Iterator[None]:
    """Let errors in a file's content name the file; what they named before becomes the field.

    Parameters
    ----------
    others : what else was given, such as flags; errors about those stay as they are
    """
    try:
        yield
    except InputError as error:
        if error.where.startswith(path) or error.where in others:
            raise
        inside = [part for part in (error.where, error.field) if part]
        raise type(error)(path, ": ".join(inside), error.message) from None


@contextmanager
def unverified(path: str) -> Iterator[None]:
    """Show an unchecked document; where its parts contradict each other, raise ``InputError``."""
    with located_in(path):
        try:
            yield
        except InputError:
            raise
        except (LookupError, ValueError, TypeError, ArithmeticError) as error:
            reported = f"{type(error).__name__} {one_line(error)}"
            raise InputError(
                path, None, f"its parts contradict each other, expected a consistent document: {reported}"
            ) from None
