"""Short tasks shared with copies of this process, since threads have one interpreter among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tilewright.foundation.forked import Forked, Send, can_fork, wait_for
from tilewright.solvers.kept import Kept, Told
from tilewright.solvers.observer import Observer

_FEWEST = 4  # tasks behind the first one for which a copy pays
_LONG = 2  # tasks that turn out long after which the others are not short either
_STEP = 0.05  # seconds between two looks at what may end the wait
_SILENCE = 5.0  # seconds after which copies that send nothing are given up
_MOST = 16  # processes, as each has tables of its own

Answer = TypeVar("Answer")


class Quick(NamedTuple, Generic[Answer]):
    """What came of a task: its place, its answer (``None`` where it was not short), and what it told."""

    place: int
    answer: Answer | None
    told: list[Told]


def quick_answers(
    tasks: Sequence[Callable[[Observer], Answer | None]],
    workers: int,
    stopped: Callable[[], bool],
    alone: int = 0,
) -> Iterator[Quick[Answer]]:
    """Answers of short tasks, each as soon as it is there; ends where some tasks turn out long.

    One of them is done here before all others, so that copies have what it loads.  Then this process and its
    copies each take the next one that is left.  A copy that fails leaves its tasks undone; they are among
    those not given.

    Parameters
    ----------
    tasks : begin in their order; each gives up (``None``) once it is not short
    workers : processes, this one included
    stopped : whether nobody waits for answers any more
    alone : place of the task that is done first; while it lasts, nothing else is done
    """
    if workers < 2 or len(tasks) <= _FEWEST or not can_fork():
        return
    first = _done(tasks, alone)
    yield first
    if first.answer is None or stopped():
        return
    places = [place for place in range(min(len(tasks), 1 << 13)) if place != alone]
    left, filling = os.pipe()
    os.set_blocking(filling, False)  # where a pipe has room for few places, the other tasks are not given
    os.write(filling, b"".join(place.to_bytes(4) for place in places))
    os.close(filling)
    copies: list[Forked[Quick[Answer]]] = []
    try:
        try:
            for _ in range(min(workers, _MOST, len(tasks) // 2) - 1):
                copies.append(Forked(lambda send: _share(tasks, left, send)))
        except OSError:
            pass  # fewer copies, or none: this process does the rest
        long = 0
        for quick in _together(tasks, left, copies, stopped):
            yield quick
            long += quick.answer is None
            if long >= _LONG:
                break
    finally:
        os.close(left)
        for copy in copies:
            copy.end()


def _together(
    tasks: Sequence[Callable[[Observer], Answer | None]],
    left: int,
    copies: list[Forked[Quick[Answer]]],
    stopped: Callable[[], bool],
) -> Iterator[Quick[Answer]]:
    """What this process and its copies do, until nothing is left."""
    silent = 0.0
    while not stopped():
        token = os.read(left, 4)
        if token:
            yield _done(tasks, int.from_bytes(token))
        working = [copy for copy in copies if not copy.is_over]
        if not token:
            if not working or silent > _SILENCE:
                return
            wait_for(working, _STEP)
            silent += _STEP
        for copy in working:
            for quick in copy.received():
                silent = 0.0
                yield quick


def _share(
    tasks: Sequence[Callable[[Observer], Answer | None]], left: int, send: Send[Quick[Answer]]
) -> None:
    """Do in a copy what is left, one task after the other, until too many are long."""
    long = 0
    while long < _LONG and (token := os.read(left, 4)):
        quick = _done(tasks, int.from_bytes(token))
        send(quick)
        long += quick.answer is None


def _done(tasks: Sequence[Callable[[Observer], Answer | None]], place: int) -> Quick[Answer]:
    told: list[Told] = []
    answer = tasks[place](Kept(told.append))
    return Quick(place, answer, told)
