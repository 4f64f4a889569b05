"""Ctrl-C, SIGTERM and ``kill -9``: what was found is never lost."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import HARD, SMALL, Call, finish, start
from clocks import delay, wait_until
from shipped import follows_schema

from tilewright.api.live import LiveDocument
from tilewright.cli.terminal.signals import Interruption, graceful_stop
from tilewright.foundation import interrupts
from tilewright.foundation.processes import shielded
from tilewright.solvers.mapping.networks import network_search
from tilewright.solvers.running import SearchRun

LARGER = "conv:N=48,K=1440,C=720,P=60,Q=60,R=3,S=3,pad=1"
"""A layer whose first mapping takes many seconds."""

DEAF = """
import time
from tilewright.solvers.mapping.branch import Branch
Branch.solve = lambda self, search: time.sleep(100)
"""
"""Code after which the solver hears of no limit."""


def has_mapping(log: Path) -> Callable[[], bool]:
    return lambda: log.exists() and any(line in log.read_text() for line in ("\n* ", "\nh "))


UNEVEN = (
    *("map", HARD, "-a", "eyeriss-168", "--solver", "branch", "--storage", "uneven"),
    *("-o", "edp", "-f", "json", "--log", "log"),
)
"""A search that takes minutes, with its progress in a file."""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_signal_returns_the_incumbent(tmp_path: Path, number: signal.Signals) -> None:
    """Within two seconds of the signal the document is printed with the best mapping and its bound."""
    process = start(tmp_path, *UNEVEN)
    wait_until(has_mapping(tmp_path / "log"), process)
    sent = time.monotonic()
    process.send_signal(number)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 0
    follows_schema(outcome.document)
    (layer,) = outcome.document["layers"]
    assert layer["status"] == "interrupted"
    assert layer["mapping"]["nodes"]
    assert 0 < layer["bound"] < layer["value"]


@pytest.mark.slow
def test_signal_skips_the_remaining_layers(tmp_path: Path) -> None:
    """Finished layers stay, those that run are interrupted, the others are listed as missing."""
    other = HARD.replace("N=64", "N=32")
    (tmp_path / "net.yaml").write_text(
        f"- {SMALL},name=a\n- {HARD},name=b\n- {other},name=c\n- gemm:M=4,N=4,K=4,name=d\n"
    )
    process = start(
        tmp_path,
        "map",
        "net.yaml",
        "-a",
        "eyeriss-168",
        "--solver",
        "branch",
        "--storage",
        "uneven",
        "-o",
        "edp",
        "--threads",
        "2",
        "--out",
        "r.json",
        "--log",
        "log",
    )
    wait_until(
        lambda: has_mapping(tmp_path / "log")() and "b: conv2d" in (tmp_path / "log").read_text(), process
    )
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code == 130
    document = json.loads((tmp_path / "r.json").read_text())
    assert [layer["status"] for layer in document["layers"]] == ["optimal", "interrupted", "interrupted"]
    assert (document["complete"], document["missing"]) == (False, ["d"])
    assert outcome.out.splitlines()[-1].startswith("1 of 3 layers optimal, 2 interrupted, 1 not reached")


def test_signal_before_any_mapping_exits_130(tmp_path: Path) -> None:
    """Without a solution the exit code is 130, within two seconds although the solver does not listen."""
    process = start(tmp_path, *UNEVEN, before=DEAF)
    wait_until(lambda: (tmp_path / "log").exists() and "conv2d" in (tmp_path / "log").read_text(), process)
    time.sleep(0.3)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 130
    assert outcome.document["layers"][0]["status"] == "interrupted"


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C does not wait for the solver."""
    process = start(
        tmp_path, "map", LARGER, "-a", "eyeriss-168", "--solver", "branch", "-q", "--log", "log", before=DEAF
    )
    wait_until(lambda: (tmp_path / "log").exists() and "conv2d" in (tmp_path / "log").read_text(), process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert time.monotonic() - sent < 1 + delay()
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err == "tilewright: error: interrupted\n"


def test_kill_leaves_the_finished_layers(tmp_path: Path) -> None:
    """After kill -9 the file holds every finished layer in a valid, incomplete document."""
    (tmp_path / "net.yaml").write_text(f"- {SMALL},name=a\n- gemm:M=4,N=4,K=4,name=b\n- {HARD},name=c\n")
    process = start(
        tmp_path,
        "map",
        "net.yaml",
        "-a",
        "eyeriss-168",
        "--solver",
        "branch",
        "-o",
        "edp",
        "--out",
        "r.json",
        "--log",
        "log",
    )
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and "c: conv2d" in log.read_text(), process)
    process.kill()
    assert finish(process).code == -signal.SIGKILL
    document = json.loads((tmp_path / "r.json").read_text())
    follows_schema(document)
    assert [layer["name"] for layer in document["layers"]] == ["a", "b"]
    assert (document["complete"], document["missing"]) == (False, ["c"])
    assert finish(start(tmp_path, "check", "r.json")).code == 0


def test_time_limit_is_kept(call: Call) -> None:
    """A limit ends the call long before the search would, with a mapping and a bound."""
    began = time.monotonic()
    args = ("--solver", "branch", "--storage", "uneven", "-o", "edp", "-f", "json", "-t", "2")
    outcome = call("map", HARD, "-a", "eyeriss-168", *args)
    assert time.monotonic() - began < 2 + delay()
    assert outcome.code == 0
    assert outcome.document["layers"][0]["status"] == "feasible"


def test_deaf_solver_is_left_behind(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that ignores its limit does not hold up the call."""
    from tilewright.solvers.mapping.branch import Branch

    release = threading.Event()
    monkeypatch.setattr(Branch, "solve", lambda self, search: release.wait(20))
    began = time.monotonic()
    outcome = call("map", SMALL, "-a", "tpu-edge", "-f", "json", "-t", "0.3", "--solver", "branch")
    release.set()
    assert time.monotonic() - began < 2 + delay()
    assert outcome.code == 4
    assert "did not stop in time" in outcome.document["layers"][0]["message"]


def test_handlers_come_back(call: Call) -> None:
    """After a call the handlers of both signals are what they were."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    call("map", SMALL, "-a", "tpu-edge", "-q")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_signal_in_this_process_sets_the_event() -> None:
    """The first signal sets the event, the second raises."""

    def send(number: signal.Signals) -> None:
        os.kill(os.getpid(), number)
        time.sleep(1)

    with graceful_stop() as stop:
        send(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(Interruption):
            send(signal.SIGTERM)


def test_signals_of_one_moment_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """``timeout`` sends its signal to a process and to the process's group, which is no second wish."""

    def send() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)

    with graceful_stop() as stop:
        monkeypatch.setattr(interrupts, "_TOGETHER", math.inf)
        for _ in range(3):
            send()
        assert stop.is_set()
        monkeypatch.setattr(interrupts, "_TOGETHER", 0.0)
        with pytest.raises(Interruption):
            send()


MOMENTS: dict[str, tuple[object, str, int, int]] = {
    "before the first layer": (LiveDocument, "begin", 1, 130),
    "as the first layer begins": (network_search, "_search", 1, 130),
    "between layers": (LiveDocument, "part", 1, 130),
    "at the last layer's first mapping": (SearchRun, "_on_point", 0, 0),
    "after the last layer": (LiveDocument, "end", 1, 0),
}
"""What is called then, which call of it (0: that which tells the last layer's mapping), the exit code."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", MOMENTS)
def test_exit_code_says_whether_all_is_there(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, number: signal.Signals
) -> None:
    """130 where the signal left a layer without an answer, 0 where every layer has a mapping."""
    owner, name, which, code = MOMENTS[moment]
    honest = getattr(owner, name)
    calls, sent = 0, False  # a second signal would end the call at once

    def signalled(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls, sent
        calls += 1
        last = which == 0 and args[0].search.problem.operator.bounds["K"] == 4 and args[1].key is not None
        if (calls == which or last) and not sent:
            sent = True
            monkeypatch.undo()
            os.kill(os.getpid(), number)
            time.sleep(0.05)
        return honest(*args, **kwargs)

    (tmp_path / "net.yaml").write_text(f"- {SMALL},name=a\n- gemm:M=4,N=4,K=4,name=b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owner, name, signalled)
    outcome = call("map", tmp_path / "net.yaml", "-a", "tpu-edge", "-f", "json", "--threads", "1")
    assert outcome.code == code
    follows_schema(outcome.document)
    assert outcome.document["complete"] == (code == 0)
    assert (outcome.document["missing"] == []) == (code == 0)


@pytest.mark.parametrize("module", ["cli.terminal.signals", "cli.catalog.listing"])
def test_signal_while_the_program_loads(tmp_path: Path, module: str) -> None:
    """Ctrl-C is one line and exit code 130, though a module's loader makes another error of any exception."""
    code = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'tilewright.{module}':\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "                signal.sigtimedwait([], 10)\n"
        "            except BaseException as error:\n"
        "                raise ImportError('initialization failed') from error\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from tilewright.cli.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "list", "archs"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tilewright: error: interrupted\n")


def test_a_hangup_is_never_the_second_signal() -> None:
    """Terminals send it more than once; where it was ignored from the start it stays ignored."""
    with graceful_stop() as stop:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
        assert stop.is_set()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with graceful_stop() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.05)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_workers_that_load_hear_nothing_of_the_terminal() -> None:
    """A process started under the shield blocks Ctrl-C and hang-ups from its first moment on."""
    show = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    with shielded():
        done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
    assert "SIGINT" in done.stdout
    assert "SIGHUP" in done.stdout
    assert "SIGTERM" not in done.stdout
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
