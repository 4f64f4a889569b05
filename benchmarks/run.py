"""A benchmark run: what is missing from the store is computed, and stored the moment it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer, Entry, Place
from tilewright.benchmarks.store import Store

Answers = Callable[[Sequence[BenchmarkTask], threading.Event], Iterator[tuple[BenchmarkTask, CellAnswer]]]
"""Computes tasks in whatever order and place; ends early, dropping what runs, when the event is set."""

Listener = Callable[[Place, CellAnswer], None]


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of a benchmark was done.

    Parameters
    ----------
    cells : distinct cells
    kept : those that the store already had
    done : those that were computed now
    failed : those among them whose status is ``error``
    """

    cells: int
    kept: int
    done: int
    failed: int

    @property
    def missing(self) -> int:
        return self.cells - self.kept - self.done


def run_cells(
    store: Store,
    entries: Sequence[Entry],
    answers: Answers,
    stop: threading.Event,
    listener: Listener = lambda place, answer: None,
    began: Callable[[int, int], None] = lambda cells, missing: None,
    *,
    fresh: bool = False,
) -> Counts:
    """Compute every cell that the store lacks.

    Parameters
    ----------
    answers : who computes
    listener : notified of every cell as it ends
    began : called before the first cell with the number of cells and how many of them are to be computed
    fresh : compute those again that the store has
    """
    store.place(entries)
    tasks: dict[str, BenchmarkTask] = {}
    places: dict[str, Place] = {}
    for entry in entries:
        tasks.setdefault(entry.task.key, entry.task)
        places.setdefault(entry.task.key, entry.place)
    have = set() if fresh else store.finished()
    missing = [task for key, task in tasks.items() if key not in have]
    began(len(tasks), len(missing))
    done = failed = 0
    for task, answer in answers(missing, stop):
        store.put(task, answer)
        done += 1
        failed += answer.status == "error"
        listener(places[task.key], answer)
    return Counts(len(tasks), len(tasks) - len(missing), done, failed)
