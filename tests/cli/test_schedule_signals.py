"""Ctrl-C, SIGTERM and ``kill -9`` on ``schedule`` and ``codesign``: what was found is never lost."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from calls import Call, finish, start
from clocks import delay, wait_until
from shipped import follows_schema
from systems import SYSTEM

from tilewright.hardware.scheduling.herald import classes
from tilewright.report.records.schemas import CODESIGN, SCHEDULE

NETWORK = """
- gemm:M=1,N=16,K=32
- gemm:M=3,N=40,K=8
- gemm:M=7,N=5,K=64
- gemm:M=16,N=16,K=5
"""
WORKLOAD = "networks: [{name: net, model: net.yaml, batches: 20}]"
SCHEDULE_WORK = ("schedule", "work.yaml", "--system", "system.yaml")
CODESIGN_WORK = ("codesign", "work.yaml", "--class", "edge")

SMALL = """
from tilewright.hardware.scheduling.herald import classes
classes.CLASSES["edge"] = classes.AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2)
"""
ENDLESS = (
    SMALL
    + """
import time
from tilewright.formulation.limits import Limits
from tilewright.solvers.scheduling.herald.improving import Improver
def run(self, search, *_, **__):
    open("begun", "w").close()
    while not search.limits.expired:
        time.sleep(0.01)
Improver.run = run
"""
)
"""Code after which no large problem is ever solved, though it heeds limits."""
DEAF = (
    SMALL
    + """
import time
from tilewright.solvers.scheduling.herald.improving import Improver
def run(self, search, *_, **__):
    open("begun", "w").close()
    time.sleep(100)
Improver.run = run
"""
)
"""Code after which the search hears of no limit once it has its first schedules."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A workload of eighty layers on two small sub-accelerators; cost tables that the tests share."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", classes.AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "work.yaml").write_text(WORKLOAD)
    (tmp_path / "system.yaml").write_text(SYSTEM)


def begun(folder: Path, *args: str, before: str) -> subprocess.Popen[str]:
    """A search that has its first schedules and begins to improve on them."""
    process = start(
        folder, *args, "-o", "edp", "--threads", "1", "--log", "log", "--out", "r.json", before=before
    )
    wait_until((folder / "begun").exists, process)
    return process


@pytest.mark.parametrize(
    ("args", "number", "before"),
    [
        (SCHEDULE_WORK, signal.SIGINT, ENDLESS),
        pytest.param(SCHEDULE_WORK, signal.SIGTERM, DEAF, marks=pytest.mark.slow),
        pytest.param(CODESIGN_WORK, signal.SIGTERM, ENDLESS, marks=pytest.mark.slow),
        (CODESIGN_WORK, signal.SIGINT, DEAF),
    ],
)
def test_signal_returns_the_incumbent(
    call: Call, tmp_path: Path, args: tuple[str, ...], number: signal.Signals, before: str
) -> None:
    """The best schedule so far is printed and written, though the search may not listen."""
    process = begun(tmp_path, *args, "-f", "json", before=before)
    sent = time.monotonic()
    process.send_signal(number)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 0
    document = outcome.document
    follows_schema(document, SCHEDULE if args[0] == "schedule" else CODESIGN)
    assert (document["status"], document["complete"]) == ("interrupted", True)
    assert (document if args[0] == "schedule" else document["best"])["schedule"]
    assert json.loads((tmp_path / "r.json").read_text()) == document
    assert call("check", "r.json").code == 0


@pytest.mark.parametrize("args", [SCHEDULE_WORK, pytest.param(CODESIGN_WORK, marks=pytest.mark.slow)])
def test_signal_before_any_schedule_exits_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    """While costs of layers are computed there is no schedule; the document says so."""
    before = SMALL + "\nimport time\nfrom tilewright.solvers.scheduling.herald.cost_tables import costs\n"
    before += "costs.best_by_size = lambda *args: time.sleep(100)\n"
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "costs"))
    process = start(tmp_path, *args, "--threads", "1", "--log", "log", "-f", "json", before=before)
    wait_until(lambda: (tmp_path / "log").exists() and "costs" in (tmp_path / "log").read_text(), process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code == 130
    assert outcome.document["status"] == "interrupted"


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C does not wait for the search."""
    process = begun(tmp_path, *SCHEDULE_WORK, before=DEAF)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.endswith("tilewright: error: interrupted\n")


def has_schedule(path: Path) -> bool:
    """Whether the file holds a schedule yet; bounds come first."""
    if not path.exists():
        return False
    document = json.loads(path.read_text())
    return bool(document.get("schedule") or (document.get("best") or {}).get("schedule"))


@pytest.mark.parametrize("args", [SCHEDULE_WORK, pytest.param(CODESIGN_WORK, marks=pytest.mark.slow)])
def test_kill_leaves_the_best_schedule(call: Call, tmp_path: Path, args: tuple[str, ...]) -> None:
    """After kill -9 the file holds a valid document that has not ended, and that passes every check."""
    process = begun(tmp_path, *args, before=DEAF)
    wait_until(lambda: has_schedule(tmp_path / "r.json"), process)
    process.kill()
    assert finish(process).code == -signal.SIGKILL
    document = json.loads((tmp_path / "r.json").read_text())
    follows_schema(document, SCHEDULE if args[0] == "schedule" else CODESIGN)
    assert document["complete"] is False
    assert (document if args[0] == "schedule" else document["best"])["schedule"]
    assert call("check", "r.json").code == 0


def test_a_search_that_dies_leaves_what_it_found(tmp_path: Path) -> None:
    """The status is ``error``, with the best schedule and the reason."""
    before = "from tilewright.solvers.scheduling.herald.improving import Improver\n"
    before += "def run(self, search, *_, **__):\n    raise RuntimeError('broken')\nImprover.run = run\n"
    args = (*SCHEDULE_WORK, "-o", "edp", "--threads", "1", "-f", "json", "-q", "-t", "20")
    outcome = finish(start(tmp_path, *args, before=before))
    document = outcome.document
    assert (document["status"], document["message"]) == ("error", "RuntimeError: broken")
    assert document["schedule"]
