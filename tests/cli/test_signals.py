"""Ctrl-C, SIGTERM and ``kill -9``: what was found is never lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from calls import HARD, SMALL, Call, finish, start

from tilewright.cli.terminal.signals import Interruption, graceful_stop
from tilewright.report.records.schemas import result_schema

LARGER = "conv:N=48,K=1440,C=720,P=60,Q=60,R=3,S=3,pad=1"
"""A layer whose first mapping takes many seconds."""

DEAF = """
import time
from tilewright.solvers.mapping.branch import Branch
Branch.solve = lambda self, search: time.sleep(100)
"""
"""Code after which the solver hears of no limit."""


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 30) -> None:
    """Wait until something has happened while the process runs."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


def has_mapping(log: Path) -> Callable[[], bool]:
    return lambda: log.exists() and "\n* " in log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_returns_the_incumbent(tmp_path: Path, number: signal.Signals) -> None:
    """Within two seconds of the signal the document is printed with the best mapping and its bound."""
    process = start(
        tmp_path,
        "map",
        HARD,
        "-a",
        "eyeriss-168",
        "--solver",
        "branch",
        "--factors",
        "perfect",
        "-f",
        "json",
        "--log",
        "log",
    )
    wait_for(has_mapping(tmp_path / "log"), process)
    sent = time.monotonic()
    process.send_signal(number)
    outcome = finish(process)
    assert time.monotonic() - sent < 6
    assert outcome.code == 0
    jsonschema.validate(outcome.document, result_schema())
    (layer,) = outcome.document["layers"]
    assert layer["status"] == "interrupted"
    assert layer["mapping"]["nodes"]
    assert 0 < layer["bound"] < layer["value"]


def test_signal_skips_the_remaining_layers(tmp_path: Path) -> None:
    """Finished layers stay, the running one is interrupted, the others are listed as missing."""
    (tmp_path / "net.yaml").write_text(f"- {SMALL},name=a\n- {HARD},name=b\n- gemm:M=4,N=4,K=4,name=c\n")
    process = start(
        tmp_path,
        "map",
        "net.yaml",
        "-a",
        "eyeriss-168",
        "--solver",
        "branch",
        "--factors",
        "perfect",
        "--out",
        "r.json",
        "--log",
        "log",
    )
    wait_for(
        lambda: has_mapping(tmp_path / "log")() and "b: conv2d" in (tmp_path / "log").read_text(), process
    )
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code in (0, 130)
    document = json.loads((tmp_path / "r.json").read_text())
    assert [layer["status"] for layer in document["layers"]] == ["optimal", "interrupted"]
    assert (document["complete"], document["missing"]) == (False, ["c"])
    assert outcome.out.splitlines()[-1].startswith("1 of 2 layers optimal, 1 interrupted, 1 not reached")


def test_signal_before_any_mapping_exits_130(tmp_path: Path) -> None:
    """Without a solution the exit code is 130, within two seconds although the solver does not listen."""
    process = start(
        tmp_path,
        "map",
        HARD,
        "-a",
        "eyeriss-168",
        "--solver",
        "branch",
        "--factors",
        "perfect",
        "-f",
        "json",
        "--log",
        "log",
        before=DEAF,
    )
    wait_for(lambda: (tmp_path / "log").exists() and "conv2d" in (tmp_path / "log").read_text(), process)
    time.sleep(0.3)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert time.monotonic() - sent < 6
    assert outcome.code == 130
    assert outcome.document["layers"][0]["status"] == "interrupted"


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C does not wait for the solver."""
    process = start(
        tmp_path, "map", LARGER, "-a", "eyeriss-168", "--solver", "branch", "-q", "--log", "log", before=DEAF
    )
    wait_for(lambda: (tmp_path / "log").exists() and "conv2d" in (tmp_path / "log").read_text(), process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert time.monotonic() - sent < 5
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
        "--factors",
        "perfect",
        "--out",
        "r.json",
        "--log",
        "log",
    )
    wait_for(has_mapping(tmp_path / "log"), process)
    wait_for(lambda: "c: conv2d" in (tmp_path / "log").read_text(), process)
    process.kill()
    assert finish(process).code == -signal.SIGKILL
    document = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(document, result_schema())
    assert [layer["name"] for layer in document["layers"]] == ["a", "b"]
    assert (document["complete"], document["missing"]) == (False, ["c"])
    assert finish(start(tmp_path, "check", "r.json")).code == 0


def test_time_limit_is_kept(call: Call) -> None:
    """A limit ends the call long before the search would, with a mapping and a bound."""
    began = time.monotonic()
    args = ("--solver", "branch", "--factors", "perfect", "-f", "json", "-t", "6")
    outcome = call("map", HARD, "-a", "eyeriss-168", *args)
    assert time.monotonic() - began < 12
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
    assert time.monotonic() - began < 10
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
