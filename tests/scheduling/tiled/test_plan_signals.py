"""Ctrl-C, SIGTERM and ``kill -9`` on ``schedule`` on a tiled machine: what was found is never lost."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import end_started, finish, start
from clocks import delay, wait_until
from shipped import follows_schema

from tilewright.report.records.schemas import PLAN

CALL = (
    "schedule",
    "conv:K=32,C=16,P=8,Q=8,R=3,S=3",
    "--system",
    "atomic-2x2",
    "-m",
    "ls",
    "-q",
    "-f",
    "json",
)
PATCH = """
import time
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
first = LayerSequential.offer
def offer(self, search):
    first(self, search)
    open("begun", "w").close()
    {then}
LayerSequential.offer = offer
"""
HEEDS = PATCH.format(then="\n    while not search.limits.expired:\n        time.sleep(0.01)")
"""Code after which a search finds a plan and then nothing more, though it heeds limits."""
DEAF = PATCH.format(then="time.sleep(100)")
"""Code after which it hears of no limit once it has its plan."""
SLOW = PATCH.replace("first(self, search)", "open('begun', 'w').close(); time.sleep(100)").format(then="pass")
"""Code after which it never has one."""


@pytest.fixture(autouse=True)
def no_process_outlives_its_test() -> Iterator[None]:
    """Whatever a test has started and not finished is killed."""
    yield
    end_started()


def begun(folder: Path, before: str) -> subprocess.Popen[str]:
    """A search that has come to the end of what it finds."""
    process = start(folder, *CALL, "--out", "plan.json", before=before)
    wait_until((folder / "begun").exists, process)
    return process


SIGNALS = [
    (signal.SIGTERM, DEAF),
    pytest.param(signal.SIGINT, HEEDS, marks=pytest.mark.slow),
    pytest.param(signal.SIGINT, DEAF, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("number", "before"), SIGNALS)
def test_a_signal_returns_the_plan(tmp_path: Path, number: signal.Signals, before: str) -> None:
    """Within two seconds the best plan is printed and written, though the search may not listen."""
    process = begun(tmp_path, before)
    sent = time.monotonic()
    process.send_signal(number)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 0
    document = outcome.document
    follows_schema(document, PLAN)
    assert (document["status"], document["complete"]) == ("interrupted", True)
    assert document["plan"] is not None
    assert json.loads((tmp_path / "plan.json").read_text()) == document


@pytest.mark.slow
def test_a_signal_before_any_plan_exits_130(tmp_path: Path) -> None:
    """There is a bound and no plan, and the document says so."""
    process = begun(tmp_path, SLOW)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code == 130
    assert outcome.document["status"] == "interrupted"
    assert outcome.document["bound"] > 0


def test_kill_leaves_the_best_plan(tmp_path: Path) -> None:
    """After kill -9 the file holds a document that has not ended and has the plan; it passes its check."""
    process = begun(tmp_path, DEAF)
    path = tmp_path / "plan.json"
    wait_until(lambda: path.exists() and json.loads(path.read_text())["plan"] is not None, process)
    process.kill()
    assert finish(process).code == -signal.SIGKILL
    document = json.loads(path.read_text())
    follows_schema(document, PLAN)
    assert document["complete"] is False
    from tilewright.report.checks.scheduling.tiled.plan import check_plan
    from tilewright.report.records.scheduling.tiled.files import parse_plan

    assert check_plan(parse_plan(document, "plan.json"), "plan.json").faults == ()
