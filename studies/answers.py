"""Answers of studies in an SQLite file: a question is asked once, its answer kept the moment it is there.

A study that is killed goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tilewright import __version__
from tilewright.foundation.database import Database, Layout, seal
from tilewright.foundation.pool import Call, computed

_TABLE = """
CREATE TABLE cell (
    key TEXT PRIMARY KEY,   -- content hash of cell and version
    cell TEXT NOT NULL,     -- what was asked, as JSON
    answer TEXT NOT NULL,   -- what came of it, as JSON
    seal TEXT NOT NULL      -- SHA-256 of the columns before
) WITHOUT ROWID"""


class Question(Protocol):
    """A frozen dataclass of plain fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Answer(Protocol):
    """A dataclass whose status is ``error`` where nothing came of the question."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def status(self) -> str: ...


Asked = TypeVar("Asked", bound=Question)
Reported = TypeVar("Reported", bound=Answer)


def content_hash(question: Question) -> str:
    """Of a question and this program's version."""
    return hashlib.sha256(json.dumps([__version__, asdict(question)]).encode()).hexdigest()


class AnswerStore(Generic[Asked, Reported]):
    """The SQLite file of finished cells.

    Parameters
    ----------
    made : an answer of its fields
    application : SQLite's application_id of such files; ``noun``: what they are called in messages

    Raises
    ------
    InputError : for a file of something else, or one that is damaged
    """

    def __init__(self, path: Path, made: Callable[..., Reported], application: int, noun: str) -> None:
        self._base, self._made = Database(path), made
        try:
            self._base.adopt(Layout(application, 0, (_TABLE,), f"a store of {noun}"))
        except BaseException:
            self._base.close()
            raise

    def get(self, cell: Asked) -> Reported | None:
        """What a cell came to, if it has ended."""
        key = content_hash(cell)
        rows = self._base.rows("SELECT key, cell, answer, seal FROM cell WHERE key = ?", (key,))
        if not rows:
            return None
        if seal(rows[0][:-1]) != rows[0][-1]:
            raise self._base.damaged(f"cell {key[:12]}")
        with self._base.reading(f"cell {key[:12]}"):
            data: dict[str, Any] = json.loads(rows[0][2])
            return self._made(**data)

    def put(self, cell: Asked, found: Reported) -> None:
        """Keep a cell for good."""
        row = (content_hash(cell), json.dumps(asdict(cell)), json.dumps(asdict(found)))
        self._base.rows("INSERT OR REPLACE INTO cell VALUES (?, ?, ?, ?)", (*row, seal(row)))

    def close(self) -> None:
        """Close the file."""
        self._base.close()


def answers(
    store: AnswerStore[Asked, Reported],
    cells: Sequence[Asked],
    jobs: int,
    compute: Callable[[Asked], Reported],
    failed: Callable[[str], Reported],
    *,
    fresh: bool = True,
    minutes: float = math.inf,
) -> Iterator[tuple[Asked, Reported]]:
    """Compute the cells that the store lacks or that failed, and yield each as it ends.

    Parameters
    ----------
    jobs : worker processes
    compute : a function of a module, run in another process
    failed : the answer where a worker died of something
    fresh : whether every cell has a process of its own
    minutes : after which no cell begins
    """
    end = time.monotonic() + 60 * minutes
    missing = []
    for cell in dict.fromkeys(cells):
        known = store.get(cell)
        if known is None or known.status == "error":
            missing.append(cell)
    waiting = iter(missing)

    def call() -> Call[Asked] | None:
        cell = next(waiting, None) if time.monotonic() < end else None
        return None if cell is None else Call(cell, (cell,))

    with closing(computed(compute, call, jobs, lambda: False, fresh=fresh)) as ended:
        for cell, future in ended:
            failure = future.exception()
            answer = failed(f"the worker died: {failure}") if failure else future.result()
            store.put(cell, answer)
            yield cell, answer
