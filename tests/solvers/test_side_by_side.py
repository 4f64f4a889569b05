"""Searches that run side by side are told of as though one had followed the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Barrier, Event

import pytest

from tilewright.solvers.observer import Observer, Unobserved
from tilewright.solvers.side_by_side import in_order


class _Notes(Unobserved):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def note(self, text: str) -> None:
        self.heard.append(text)


def _nobody(index: int, answer: int) -> None:
    """Nobody is told."""


def _task(number: int, meeting: Barrier) -> Callable[[Observer], int]:
    def work(observer: Observer) -> int:
        observer.note(f"{number} begins")
        meeting.wait(10)
        if number % 2 == 0:
            time.sleep(0.02)  # the later one of two ends first
        observer.note(f"{number} ends")
        return number

    return work


def test_answers_and_news_come_in_order() -> None:
    """Two tasks run at once, and the first is told of to its end before anything of the second."""
    notes, over, meeting = _Notes(), Event(), Barrier(2)
    ended: dict[int, int] = {}

    def told(index: int, answer: int) -> None:
        ended[index] = answer

    answers = list(in_order([_task(number, meeting) for number in range(6)], 2, notes, over, told))
    assert answers == list(range(6))
    assert notes.heard == [f"{number} {what}" for number in range(6) for what in ("begins", "ends")]
    assert ended == {number: number for number in range(6)}
    assert over.is_set()


def test_failures_are_raised_in_their_place() -> None:
    """The answers before a failure are given first, and what still runs is told that it is over."""
    over, ended = Event(), Event()

    def fails(observer: Observer) -> int:
        raise ValueError("no machine")

    def runs_on(observer: Observer) -> int:
        ended_in_time = over.wait(10)
        if ended_in_time:
            ended.set()
        return 2

    def first(observer: Observer) -> int:
        return 1

    answers = in_order([first, fails, runs_on], 2, Unobserved(), over, _nobody)
    assert next(answers) == 1
    with pytest.raises(ValueError, match="no machine"):
        next(answers)
    assert ended.wait(10)


def test_one_worker_needs_no_thread() -> None:
    """With one worker a task runs only when its answer is asked for."""
    ran: list[int] = []

    def task(number: int) -> Callable[[Observer], int]:
        return lambda observer: ran.append(number) or number

    answers = in_order([task(0), task(1)], 1, Unobserved(), Event(), _nobody)
    assert next(answers) == 0
    assert ran == [0]


def test_later_answers_are_known_before_earlier_ones() -> None:
    """An answer behind one that takes long is handed on at once, so that it can be kept."""
    known = Event()

    def long(observer: Observer) -> int:
        return int(known.wait(10))

    def told(index: int, answer: int) -> None:
        if index == 1:
            known.set()

    assert list(in_order([long, lambda observer: 5], 2, Unobserved(), Event(), told)) == [1, 5]
