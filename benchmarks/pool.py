"""Cells in worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice

from pebble import ProcessExpired, ProcessPool

from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer
from tilewright.benchmarks.work import answer, failed
from tilewright.solvers.processes import leave_with_parent, shielded

_STEP = 0.1
_GRACE = 20.0
"""Seconds beyond twice its limit after which a cell's worker is ended."""


def local_answers(
    jobs: int, tasks: Sequence[BenchmarkTask], stop: threading.Event
) -> Iterator[tuple[BenchmarkTask, CellAnswer]]:
    """Answers in the order in which they come; what still runs when ``stop`` is set is dropped.

    A worker that dies, or that ignores its limit and is ended, is replaced, and its cell's status is
    ``error``.

    Parameters
    ----------
    jobs : worker processes
    """
    pool = ProcessPool(max_workers=jobs, initializer=_prepare, context=multiprocessing.get_context("spawn"))
    waiting = iter(tasks)
    running: dict[Future[CellAnswer], BenchmarkTask] = {}
    try:
        while not stop.is_set():
            for task in islice(waiting, 2 * jobs - len(running)):
                most = 2 * task.seconds + _GRACE
                with shielded():
                    future: Future[CellAnswer] = pool.schedule(answer, args=[task, task.key], timeout=most)
                running[future] = task
            if not running:
                break
            for future in wait(running, timeout=_STEP, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _outcome(future)
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join(timeout=1.5)


def _outcome(future: Future[CellAnswer]) -> CellAnswer:
    try:
        return future.result()
    except TimeoutError:
        return failed("did not stop long after its time limit and was ended")
    except ProcessExpired as error:
        return failed(f"the worker process died with exit code {error.exitcode}")


def _prepare() -> None:
    """A worker leaves Ctrl-C to the main process, and ends when that has died."""
    leave_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # end at once, whatever the search is doing
