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
from tilewright.foundation.pool import Call, computed
from tilewright.foundation.store import Column, Layout, SealedStore, Table

_COLUMNS = (
    Column("key", "TEXT NOT NULL", "content hash of cell and version"),
    Column("cell", "TEXT NOT NULL", "what was asked, as JSON"),
    Column("answer", "TEXT NOT NULL", "what came of it, as JSON"),
)


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


class AnswerStore(SealedStore, Generic[Asked, Reported]):
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
        self._cells = Table("cell", _COLUMNS, lambda row: made(**json.loads(row["answer"])))
        super().__init__(path, Layout(application, 0, (self._cells,), f"a store of {noun}"))

    def get(self, cell: Asked) -> Reported | None:
        """What a cell came to, if it has ended."""
        return self.find(self._cells, key=content_hash(cell))

    def put(self, cell: Asked, answer: Reported) -> None:
        """Keep a cell for good; where the file takes none it stays in memory, and `failure` says why."""
        key, asked, answered = content_hash(cell), json.dumps(asdict(cell)), json.dumps(asdict(answer))
        self.add(self._cells, {"key": key, "cell": asked, "answer": answered})


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

    Raises
    ------
    OutputError : in the end, where the store's file did not take all of them
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
    if store.failure is not None:
        raise store.failure
