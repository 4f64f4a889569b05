"""Worker processes: what they answer, and what becomes of one that dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

from calls import children_of
from small_bench import METHODS, answers_here, small_request

from tilewright.benchmarks.plan import make_plan
from tilewright.benchmarks.work import CELLS, answer
from tilewright.foundation.pool import local_answers

ONE = small_request(
    machines=("nvdla-256",),
    objectives=("edp",),
    methods=METHODS[:1],
    optimum=None,
    patterns=("000*",),
    seeds=1,
)
ENDLESS = "annealing[steps=100000000]"


def test_workers_answer_as_this_process_does() -> None:
    """The same values and mappings, whoever computes."""
    plan = make_plan(replace(ONE, patterns=("00[012]*",), methods=METHODS))
    tasks, stop = [entry.task for entry in plan.entries], threading.Event()
    here = {task.key: reported for task, reported in answers_here(tasks, stop)}
    there = {task.key: reported for task, reported in local_answers(CELLS, 2, tasks, stop)}
    assert here.keys() == there.keys()
    for key, reported in here.items():
        assert (reported.status, reported.value_key) == (there[key].status, there[key].value_key)
        assert reported.mapping == there[key].mapping


def test_dying_worker_fails_its_cell_alone() -> None:
    """A worker that is killed is replaced; its cell is an error, and the others are answered."""
    (entry,) = make_plan(ONE).entries
    quick = entry.task
    slow = replace(quick, method=ENDLESS, seconds=300.0)
    last = replace(quick, seed=1)
    answers = local_answers(CELLS, 1, [quick, slow, last], threading.Event())
    assert next(answers)[1].status == "feasible"
    (worker,) = children_of(os.getpid())
    time.sleep(0.5)  # the slow one has begun
    os.kill(worker, signal.SIGKILL)
    rest = {task.key: reported for task, reported in answers}
    assert rest[slow.key].status == "error"
    assert "died with exit code -9" in rest[slow.key].message
    assert rest[last.key].status == "feasible"
    assert not children_of(os.getpid())


def test_stop_drops_what_runs() -> None:
    """Once stopped no more answers come, and no worker is left."""
    (entry,) = make_plan(ONE).entries
    slow = replace(entry.task, method=ENDLESS, seconds=300.0)
    stop = threading.Event()
    answers = local_answers(CELLS, 1, [entry.task, slow], stop)
    next(answers)
    stop.set()
    assert list(answers) == []
    assert not children_of(os.getpid())


def test_another_version_is_told_apart() -> None:
    """A worker of another version, or with another reading of the problem, does not answer for this one."""
    (entry,) = make_plan(ONE).entries
    assert "another version" in answer(entry.task, "0" * 64).message
    other = replace(entry.task, input_hash="0" * 64)
    assert "another problem" in answer(other, other.key).message


def test_whatever_a_method_does_is_an_answer() -> None:
    """An unknown method is an error with its message, not an exception."""
    (entry,) = make_plan(ONE).entries
    wrong = replace(entry.task, method="annealing[walkers=none]")
    reported = answer(wrong, wrong.key)
    assert reported.status == "error"
    assert "walkers" in reported.message
