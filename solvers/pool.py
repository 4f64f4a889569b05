"""Tasks in worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from pebble import ProcessExpired, ProcessPool

from tilewright.solvers.processes import leave_with_parent, shielded

_STEP = 0.1


class Task(Protocol):
    """Something to be computed: plain data."""

    @property
    def key(self) -> str:
        """Content hash of everything that the answer depends on."""

    @property
    def seconds(self) -> float:
        """Its own time limit."""


AnyTask = TypeVar("AnyTask", bound=Task)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Work(Generic[AnyTask, Answer]):
    """How tasks of one kind are computed.

    Parameters
    ----------
    run : a function of a module, given a task and the key that it had where it was planned; another one where
        it runs means that another version would answer
    failed : the answer that a message stands for
    grace : seconds beyond twice its limit after which a task's worker is ended
    """

    run: Callable[[AnyTask, str], Answer]
    failed: Callable[[str], Answer]
    grace: float = 20.0


def local_answers(
    work: Work[AnyTask, Answer], jobs: int, tasks: Iterable[AnyTask], stop: threading.Event
) -> Iterator[tuple[AnyTask, Answer]]:
    """Answers in the order in which they come; what still runs when ``stop`` is set is dropped.

    A worker that dies, or that ignores its limit and is ended, is replaced, and its task has failed.

    Parameters
    ----------
    jobs : worker processes
    tasks : asked for the next one whenever a worker is free; those that have none now may have one later, as
        long as something runs
    """
    pool = ProcessPool(max_workers=jobs, initializer=_prepare, context=multiprocessing.get_context("spawn"))
    waiting = iter(tasks)
    running: dict[Future[Answer], AnyTask] = {}
    try:
        while not stop.is_set():
            for task in islice(waiting, 2 * jobs - len(running)):
                most = 2 * task.seconds + work.grace
                with shielded():
                    future: Future[Answer] = pool.schedule(work.run, args=[task, task.key], timeout=most)
                running[future] = task
            if not running:
                break
            for future in wait(running, timeout=_STEP, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _outcome(work, future)
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join(timeout=1.5)


def _outcome(work: Work[AnyTask, Answer], future: Future[Answer]) -> Answer:
    try:
        return future.result()
    except TimeoutError:
        return work.failed("did not stop long after its time limit and was ended")
    except ProcessExpired as error:
        return work.failed(f"the worker process died with exit code {error.exitcode}")


def _prepare() -> None:
    """A worker leaves Ctrl-C to the main process, and ends when that has died."""
    leave_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # end at once, whatever the search is doing
