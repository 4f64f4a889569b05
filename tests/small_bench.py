"""Small benchmarks: plans of tiny layers, and stores filled in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer
from tilewright.benchmarks.plan import Plan, Request
from tilewright.benchmarks.run import Counts, run_cells
from tilewright.benchmarks.store import Store
from tilewright.benchmarks.work import answer

METHODS = ("random[victory=20]", "annealing[walkers=8,steps=10]", "branch")


def small_request(**changes: object) -> Request:
    """Three small layers on two machines by two objectives, three methods, two seeds."""
    fields: dict[str, object] = {
        "suites": ("tiny",),
        "machines": ("nvdla-256", "tpu-edge"),
        "objectives": ("edp", "E^0.5*D^0.5"),
        "methods": METHODS,
        "seeds": 2,
        "seconds": 20.0,
        "factors": "perfect",
        "patterns": ("00[012]*",),
    }
    return Request(**{**fields, **changes})  # type: ignore[arg-type]


def answers_here(
    tasks: Sequence[BenchmarkTask], stop: threading.Event
) -> Iterator[tuple[BenchmarkTask, CellAnswer]]:
    """Computes in this process."""
    for task in tasks:
        if stop.is_set():
            return
        yield task, answer(task, task.key)


def run_here(store: Store, plan: Plan, **options: bool) -> Counts:
    """Run what is missing in this process."""
    return run_cells(store, plan.entries, answers_here, threading.Event(), **options)
