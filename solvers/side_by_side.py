"""Several searches side by side, reported in order as though one had followed the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Condition, Event
from typing import TypeVar

from tilewright.solvers.kept import Kept, Told, tell
from tilewright.solvers.observer import Observer

_STEP = 0.05  # seconds between two looks at a silent search
_ALONE = 0.5  # seconds that a search has to itself: short ones hardly leave the interpreter, which is one

Answer = TypeVar("Answer")


def in_order(
    tasks: Sequence[Callable[[Observer], Answer]],
    workers: int,
    observer: Observer,
    over: Event,
    ended: Callable[[int, Answer], None],
) -> Iterator[Answer]:
    """Answers of tasks in their order, some of which run at the same time.

    The observer hears of a task once all before it have ended, and from the thread of the caller: what
    happens earlier is kept until then.  An exception of a task is raised where its answer would stand.

    Parameters
    ----------
    tasks : each is given its observer; they begin in their order
    workers : tasks that run at once; the next one joins those that have run for half a second
    over : set once nobody waits for the answers any more; tasks that run should end then
    ended : given every answer soon after it is there, and before it is yielded, in the thread of the caller
    """
    if workers < 2 or len(tasks) < 2:
        for index, task in enumerate(tasks):
            answer = task(observer)
            ended(index, answer)
            yield answer
        return
    events: list[SimpleQueue[Told]] = [SimpleQueue() for _ in tasks]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="searches")
    try:
        turns = _Turns()
        futures = [
            pool.submit(turns.take, index, task, Kept(kept.put))
            for index, (task, kept) in enumerate(zip(tasks, events, strict=True))
        ]
        waiting = dict(enumerate(futures))

        def look() -> None:
            for index in [index for index, future in waiting.items() if future.done()]:
                future = waiting.pop(index)
                if future.exception() is None:
                    ended(index, future.result())

        for future, kept in zip(futures, events, strict=True):
            yield _awaited(future, kept, observer, look)
    finally:
        over.set()
        pool.shutdown(wait=False, cancel_futures=True)


class _Turns:
    """Tasks begin in their order, and in parallel with others only once these have worked for a while."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._next = 0
        self._begun: dict[int, float] = {}

    def take(self, index: int, task: Callable[[Observer], Answer], observer: Observer) -> Answer:
        """Wait for the task's turn, and run it."""
        with self._changed:
            while (left := self._wait_of(index)) > 0:
                self._changed.wait(left)
            self._begun[index] = time.monotonic()
            self._next = index + 1
            self._changed.notify_all()
        try:
            return task(observer)
        finally:
            with self._changed:
                del self._begun[index]
                self._changed.notify_all()

    def _wait_of(self, index: int) -> float:
        """Seconds until the task may begin, as far as is known now."""
        if index != self._next:
            return _ALONE
        return max((begun + _ALONE - time.monotonic() for begun in self._begun.values()), default=0.0)


def _awaited(
    future: Future[Answer], events: SimpleQueue[Told], observer: Observer, look: Callable[[], None]
) -> Answer:
    """The answer of a task, after all that it tells; looks at the others meanwhile."""
    while True:
        done = future.done()  # what was reported before the end is in the queue then
        look()
        try:
            tell(observer, events.get(timeout=0 if done else _STEP))
        except Empty:
            if done:
                return future.result()
