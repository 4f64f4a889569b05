"""Short tasks shared with copies of this process: every answer once, whatever ends a copy, none left.

A test's process has threads of its own, in which nothing is copied, so each case is a small program.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from tests.calls import start

from tilewright.foundation.forked import can_fork
from tilewright.solvers.quick_tasks import quick_answers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")

_BEGIN = """
import json, os, sys, time
from tilewright.foundation.forked import can_fork
from tilewright.solvers.quick_tasks import quick_answers
parent = os.getpid()
def run(task, count, workers=2, stopped=lambda: False, alone=0):
    def observed(place):
        def work(observer):
            observer.note(f"of {place}")
            return task(place)
        return work
    return list(quick_answers([observed(place) for place in range(count)], workers, stopped, alone))
def told(answers):
    said = [(quick.place, quick.answer, [list(told) for _, told in quick.told]) for quick in answers]
    print(json.dumps(said))
"""


def answers_of(program: str) -> list[tuple[int, int | None, list[list[str]]]]:
    """What a program printed that shares its tasks; nothing on standard error, and no process left."""
    command = [sys.executable, "-c", _BEGIN + textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr == ""
    return [(place, answer, told) for place, answer, told in json.loads(ended.stdout)]


def test_every_task_is_answered_once_and_copies_do_some() -> None:
    """Each process takes what is left; what a task tells comes with its answer."""
    answers = answers_of("told(run(lambda place: (time.sleep(0.05), os.getpid())[1], 20, workers=3))")
    assert sorted(place for place, _, _ in answers) == list(range(20))
    assert all(notes == [[f"of {place}"]] for place, _, notes in answers)
    processes = {answer for _, answer, _ in answers}
    assert len(processes) == 3
    for process in processes:
        assert process is not None
        assert not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("alone", [0, 7, 19])
def test_one_task_is_done_here_before_all_others(alone: int) -> None:
    """No copy is made before it has ended, and none does it again."""
    answers = answers_of(
        f"""
        def task(place):
            begun = time.monotonic()
            time.sleep(0.05)
            return os.getpid() == parent, begun, time.monotonic()
        answers = run(task, 20, workers=3, alone={alone})
        first = answers[0].answer
        assert first[0] and all(quick.answer[1] >= first[2] for quick in answers[1:])
        assert not all(quick.answer[0] for quick in answers)
        told(quick._replace(answer=1) for quick in answers)
        """
    )
    assert answers[0][0] == alone
    assert sorted(place for place, _, _ in answers) == list(range(20))


def test_a_pipe_with_room_for_few_places_does_not_block() -> None:
    """As for users with many pipes; the tasks whose places have no room are not given."""
    answers = answers_of(
        """
        import fcntl
        pipe = os.pipe
        def narrow():
            ends = pipe()
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
            return ends
        os.pipe = narrow
        told(run(lambda place: place, 3000))
        """
    )
    places = [place for place, _, _ in answers]
    assert sorted(places) == list(range(len(places)))
    assert 1000 < len(places) < 3000


def test_a_copy_that_dies_leaves_only_its_task_undone() -> None:
    """All else is done by the process that is left."""
    answers = answers_of(
        """
        def task(place):
            time.sleep(0.1)
            if os.getpid() != parent:
                os.kill(os.getpid(), 9)
            return place
        told(run(task, 12))
        """
    )
    places = sorted(place for place, _, _ in answers)
    assert len(places) == 11
    assert places[0] == 0


def test_an_exception_in_a_copy_is_silent_and_one_here_is_raised() -> None:
    """What fails in a copy is done again by the caller, who learns of it then."""
    answers = answers_of(
        """
        def task(place):
            time.sleep(0.1)
            if os.getpid() != parent:
                raise ValueError("in a copy")
            return place
        told(run(task, 12))
        try:
            run(lambda place: [1][place], 12)
        except IndexError:
            pass
        else:
            raise SystemExit("nothing was raised")
        """
    )
    assert len(answers) == 11


def test_tasks_that_are_long_end_it() -> None:
    """After two of them the rest is left to the caller, and so is the first one where it is long."""
    answers = answers_of("told(run(lambda place: None if place > 3 else place, 40))")
    assert [answer for _, answer, _ in answers].count(None) >= 2
    assert len(answers) < 12
    assert answers_of("told(run(lambda place: None, 40))") == [(0, None, [["of 0"]])]


def test_nothing_is_copied_where_that_does_not_pay_or_is_not_safe() -> None:
    """One worker, few tasks, or another thread that may hold a lock."""
    assert answers_of("told(run(lambda place: place, 40, workers=1))") == []
    assert answers_of("told(run(lambda place: place, 4))") == []
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        assert not can_fork()
        assert not list(quick_answers([lambda observer: 1] * 40, 2, lambda: False))
    finally:
        waiting.set()
        thread.join()


def test_it_ends_once_nobody_waits() -> None:
    """A signal to stop ends the wait for a copy that is at work."""
    answers = answers_of(
        """
        began = time.monotonic()
        def task(place):
            time.sleep(0.2)
            if place and os.getpid() != parent:
                time.sleep(30)
            return place
        answers = run(task, 6, stopped=lambda: time.monotonic() - began > 3)
        assert time.monotonic() - began < 10
        told(answers)
        """
    )
    assert len(answers) == 5


def test_a_network_has_the_same_answers_from_copies(tmp_path: Path) -> None:
    """Values, bounds and statuses are those of one process, and layers come in their order."""
    documents = []
    for threads in (1, 3):
        out = tmp_path / f"{threads}.json"
        arguments = ("map", "alexnet", "-a", "tpu-edge", "-o", "edp", "--threads", threads, "--out", out)
        process = start(tmp_path, *arguments)
        printed = process.communicate(timeout=120)[0]
        assert process.returncode == 0, printed
        documents.append(json.loads(out.read_text()))
    alone, shared = (
        [
            (layer["names"], layer["status"], layer["value"], layer["bound"], layer["space"])
            for layer in document["layers"]
        ]
        for document in documents
    )
    assert shared == alone
    assert all(status == "optimal" for _, status, *_ in alone)
    assert all(layer["trace"] for layer in documents[1]["layers"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_copies_end_with_their_process(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C ends the call with what it has; a call that is killed takes its copies along."""
    before = textwrap.dedent(
        """
        import os, time
        from tilewright.solvers.mapping.networks import network_search
        searched = network_search._NetworkSearch._answer
        def slow(self, index, share, observer):
            with open(f"process-{os.getpid()}", "w"):
                time.sleep(0.3)
            return searched(self, index, share, observer)
        network_search._NetworkSearch._answer = slow
        network_search._BRIEF = 30.0
        """
    )
    process = start(tmp_path, "map", "onnx:squeezenet", "-a", "tpu-edge", "--threads", 2, before=before)
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("process-*"))) < 2:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    processes = [int(file.name.rpartition("-")[2]) for file in tmp_path.glob("process-*")]
    while any(_is_alive(pid) for pid in processes):
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "habit",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.signal(signal.SIGCHLD, lambda *_: os.waitpid(-1, os.WNOHANG))",
    ],
)
def test_a_program_that_waits_for_no_process_or_for_all_of_them(habit: str) -> None:
    """A copy that has ended by itself leaves nothing to be ended then."""
    answers = answers_of(
        f"""
        import signal
        {habit}
        def task(place):
            time.sleep(0.1)
            if os.getpid() != parent:
                os._exit(1)
            return place
        told(run(task, 8, workers=3))
        """
    )
    assert len(answers) == 6


def test_files_are_closed_where_there_is_no_room_for_a_copy() -> None:
    """A system that has no process left is asked again and again."""
    answers = answers_of(
        """
        def fork():
            raise BlockingIOError(11, "no room")
        os.fork = fork
        files = len(os.listdir("/proc/self/fd"))
        answers = run(lambda place: place, 8, workers=4)
        assert len(os.listdir("/proc/self/fd")) == files
        told(answers)
        """
    )
    assert [place for place, _, _ in answers] == list(range(8))
