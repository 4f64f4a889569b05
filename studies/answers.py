"""Answers of studies in an SQLite file: a question is asked once, its answer kept the moment it is there.

A study that is killed goes on where it was.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tilewright import __version__
from tilewright.foundation.pool import Call, computed
from tilewright.foundation.store import Column, Layout, SealedStore, Table, Values

COLUMNS = (
    Column("key", "TEXT NOT NULL", "content hash of cell and version"),
    Column("cell", "TEXT NOT NULL", "what was asked, as JSON"),
    Column("answer", "TEXT NOT NULL", "what came of it, as JSON"),
    Column("seconds", "REAL", "of the processor that it took"),
    Column("date", "TEXT", "on which it ended"),
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


@dataclass(frozen=True, slots=True)
class Kept(Generic[Reported]):
    """An answer with what it took when it was computed, whoever asks for it later.

    Parameters
    ----------
    seconds : of the processor, compiling and loading included
    date : on which it ended
    """

    answer: Reported
    seconds: float
    date: str


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
        def kept(row: Values) -> Kept[Reported]:
            return Kept(made(**json.loads(row["answer"])), row["seconds"] or 0.0, row["date"] or "")

        self._cells = Table("cell", COLUMNS, kept)
        super().__init__(path, Layout(application, 1, (self._cells,), f"a store of {noun}", readable=(0,)))

    def kept(self, cell: Asked) -> Kept[Reported] | None:
        """What a cell came to and took, if it has ended."""
        return self.find(self._cells, key=content_hash(cell))

    def get(self, cell: Asked) -> Reported | None:
        """What a cell came to, if it has ended."""
        known = self.kept(cell)
        return None if known is None else known.answer

    def put(self, cell: Asked, answer: Reported, seconds: float = 0.0) -> Kept[Reported]:
        """Keep a cell for good; where the file takes none it stays in memory, and `failure` says why.

        Parameters
        ----------
        seconds : of the processor that it took
        """
        kept = Kept(answer, seconds, f"{datetime.date.today()}")
        row = {"key": content_hash(cell), "cell": asdict(cell), "answer": asdict(answer)}
        texts = {name: value if name == "key" else json.dumps(value) for name, value in row.items()}
        self.add(self._cells, {**texts, "seconds": kept.seconds, "date": kept.date})
        return kept


def timed(compute: Callable[[Asked], Reported], cell: Asked) -> tuple[Reported, float]:
    """An answer, and the seconds of the processor that it took."""
    begun = time.process_time()
    answer = compute(cell)
    return answer, time.process_time() - begun


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
        return None if cell is None else Call(cell, (compute, cell))

    with closing(computed(timed, call, jobs, lambda: False, fresh=fresh)) as ended:
        for cell, future in ended:
            failure = future.exception()
            answer, seconds = (failed(f"the worker died: {failure}"), 0.0) if failure else future.result()
            store.put(cell, answer, seconds)
            yield cell, answer
    if store.failure is not None:
        raise store.failure
