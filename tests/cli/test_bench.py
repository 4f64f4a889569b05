"""``bench`` as a user runs it: killed, interrupted, resumed, and read again by ``runs``."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path

import pytest
from calls import SMALL, Call, finish, start
from clocks import delay, wait_until
from tampering import tampered

QUICK = (
    "random",
    "-a",
    "nvdla-256",
    "--layers",
    "00[0-4]*",
    "-m",
    "random[victory=5]",
    "--seeds",
    "2",
    "--factors",
    "perfect",
    "-t",
    "60",
    "--optimum",
    "branch",
    "--jobs",
    "2",
)
"""15 runs: five layers, a proof and two seeds each."""
ENDLESS = (
    "tiny",
    "-a",
    "nvdla-256",
    "-m",
    "random[victory=5],annealing[steps=100000000]",
    "-t",
    "300",
    "--seeds",
    "2",
    "--factors",
    "perfect",
    "--optimum",
    "branch",
    "--jobs",
    "2",
)
TABLE = (
    "suite",
    "layer",
    "arch",
    "objective",
    "part",
    "method",
    "seed",
    "status",
    "value_key",
    "bound",
    "gap",
    "energy_pj",
    "cycles",
    "input_hash",
    "key",
)
"""All but what a clock measures."""


def ended(store: Path) -> int:
    """Runs that the store has, read as another program would."""
    if not store.exists():
        return 0
    base = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)
    try:
        return int(base.execute("SELECT count(*) FROM cell").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # the tables are still being made
    finally:
        base.close()


def children(pid: int) -> list[int]:
    """Child processes, of those that are still there."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def table(call: Call, store: Path) -> list[dict[str, object]]:
    """All rows of a store without what a clock measures."""
    outcome = call("runs", store, "-f", "json")
    assert outcome.code == 0, outcome.err
    return [{name: row[name] for name in TABLE} for row in outcome.document]


def test_kill_loses_nothing(call: Call, tmp_path: Path) -> None:
    """kill -9 amid 15 runs loses no finished one and leaves no worker; resumed, the table is as if nothing
    had happened."""
    process = start(tmp_path, "bench", *QUICK, "--out", "killed.sqlite")
    wait_until(lambda: ended(tmp_path / "killed.sqlite") >= 4, process)
    workers = children(process.pid)
    told = ended(tmp_path / "killed.sqlite")
    process.kill()
    finish(process)
    kept = ended(tmp_path / "killed.sqlite")
    assert told <= kept < 15
    assert len(workers) >= 2
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        time.sleep(0.05)

    resumed = call("bench", *QUICK, "--jobs", 1, "--out", "killed.sqlite", "-f", "json")
    assert resumed.code == 0, resumed.err
    assert f"15 runs, {kept} of them in killed.sqlite already" in resumed.err
    assert f"{15 - kept} runs in" in resumed.err
    whole = call("bench", *QUICK, "--jobs", 1, "--out", tmp_path / "whole.sqlite", "-q")
    assert (whole.code, whole.err) == (0, "")
    assert table(call, tmp_path / "killed.sqlite") == table(call, tmp_path / "whole.sqlite")
    assert call("runs", tmp_path / "killed.sqlite", "--check").out == "all 15 runs hold\n"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_signal_stops_cleanly(call: Call, tmp_path: Path, number: signal.Signals) -> None:
    """A signal ends the benchmark at once with the finished runs stored, and the rest told as missing."""
    store = tmp_path / "bench.sqlite"
    process = start(tmp_path, "bench", *ENDLESS)
    wait_until(lambda: ended(store) >= 3, process)
    sent = time.monotonic()
    process.send_signal(number)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 130, outcome.err
    assert "still to come" in outcome.err
    rows = call("runs", "-f", "json").document
    statuses = [row["status"] for row in rows]
    assert statuses.count("missing") == len(rows) - ended(store)
    assert "error" not in statuses


def test_bench_and_runs(call: Call, tmp_path: Path) -> None:
    """A layer text as a suite; table, JSON, CSV and Markdown of the same runs; everything fits 80 columns."""
    args = (
        "bench",
        SMALL,
        "-a",
        "nvdla-256,tpu-edge",
        "-o",
        "edp,energy",
        "-m",
        "random[victory=5],branch",
        "--seeds",
        "2",
        "--jobs",
        "1",
    )
    first = call(*args)
    assert first.code == 0, first.err
    assert "16 runs" in first.err
    assert max(map(len, first.out.splitlines())) <= 80
    again = call(*args, "-f", "json")
    assert "16 runs, 16 of them in bench.sqlite already" in again.err
    assert {line["method"] for line in again.document["methods"]} == {"random[victory=5]", "branch"}
    assert all(proof["proven"] == 1 for proof in again.document["proofs"])
    listed = call("runs")
    assert max(map(len, listed.out.splitlines())) <= 80
    assert listed.out.count("optimal") == 8
    assert call("runs", "--summary", "-f", "csv").out.startswith("objective,method,runs,")
    assert call("bench", *args[1:], "-f", "markdown").out == call("runs", "-f", "markdown").out
    assert call("runs", "--by", "arch,method", "-f", "markdown").out.startswith("| arch | method | runs |")
    rows = call(
        "runs", "-f", "json", "--arch", "tpu-edge", "--method", "branch", "--status", "optimal"
    ).document
    assert {(row["arch"], row["method"]) for row in rows} == {("tpu-edge", "branch")}
    assert "and 15 more" in call("runs", "--most", "1").out
    assert call("runs", "--export", "rows.csv").code == 0
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 17
    assert call("runs", "--check").out == "all 16 runs hold\n"


def test_check_finds_a_false_value(call: Call, copied_store: Path) -> None:
    """Exit code 5 and what is wrong."""
    change = "UPDATE cell SET value_key = '1' WHERE method LIKE 'random%'"
    tampered(copied_store, change, table="cell")
    outcome = call("runs", copied_store, "--check")
    assert outcome.code == 5
    assert "below the bound" in " ".join(outcome.out.split())


def test_failed_runs_are_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1 where a run failed."""
    from tilewright.benchmarks import work
    from tilewright.foundation import pool

    def broken(kind: object, jobs: int, tasks: list[object], stop: object) -> object:
        return ((task, work.failed("the worker process died")) for task in tasks)

    monkeypatch.setattr(pool, "local_answers", broken)
    outcome = call("bench", SMALL, "-a", "tpu-edge", "-m", "branch")
    assert outcome.code == 1
    assert "2 failed" in outcome.err


BAD = [
    (("bench", "resnet5", "-a", "tpu-edge"), ["SUITE", "did you mean 'resnet50'?"]),
    (("bench", "tiny"), ["Missing option '--arch'"]),
    (("bench", "tiny", "-a", "tpu-egde"), ["did you mean 'tpu-edge'?"]),
    (("bench", "tiny", "-a", "tpu-edge,"), ["--arch: expected names with commas between them"]),
    (("bench", "tiny", "-a", "tpu-edge", "-m", "anealing"), ["--method", "did you mean 'annealing'?"]),
    (("bench", "tiny", "-a", "tpu-edge", "-m", "annealing[stepps=3]"), ["--method", "did you mean 'steps'?"]),
    (("bench", "tiny", "-a", "tpu-edge", "-o", "energie"), ["--objective", "did you mean 'energy'?"]),
    (("bench", "tiny", "-a", "tpu-edge", "--seeds", "0"), ["--seeds: expected at least 1, got 0"]),
    (("bench", "tiny", "-a", "tpu-edge", "--jobs", "0"), ["--jobs: expected at least 1, got 0"]),
    (("bench", "tiny", "-a", "tpu-edge", "-t", "soon"), ["--time-limit: cannot read 'soon'"]),
    (("bench", "tiny", "-a", "tpu-edge", "--optimum", "random"), ["--optimum", "proves nothing"]),
    (("bench", "tiny", "-a", "tpu-edge", "--optimum-limit", "0"), ["--optimum-limit", "above 0"]),
    (("bench", "tiny", "-a", "tpu-edge", "--factors", "some"), ["--factors", "perfect"]),
    (("bench", "tiny", "-a", "tpu-edge", "-f", "xml"), ["--format", "markdown"]),
    (("bench", "tiny", "-a", "tpu-edge", "--layers", "conv"), ["--layers: conv: matches no layer of tiny"]),
    (("bench", "tiny", "-a", "tpu-edge", "--out", "none/s.sqlite"), ["none/s.sqlite: cannot be written"]),
    (("bench", "tiny", "-a", "tpu-edge", "--out", "text.sqlite"), ["text.sqlite: not an SQLite file"]),
    (("bench", "tiny", "-a", "tpu-edge", "--cluster", "x", "--jobs", "2"), ["--jobs", "no --jobs"]),
    (("runs",), ["bench.sqlite: no such file", "tilewright bench"]),
    (("runs", "text.sqlite"), ["text.sqlite: not an SQLite file"]),
    (("runs", "store.sqlite", "--suite", "tinny"), ["--suite", "did you mean 'tiny'?"]),
    (("runs", "store.sqlite", "--status", "optimum"), ["--status", "did you mean 'optimal'?"]),
    (("runs", "store.sqlite", "--seed", "x"), ["--seed: expected whole numbers"]),
    (("runs", "store.sqlite", "--by", "machine"), ["--by", "arch"]),
    (("runs", "store.sqlite", "--most", "-1"), ["--most: expected at least 0"]),
    (("runs", "store.sqlite", "--export", "rows.xls"), ["rows.xls: expected a file that ends", ".csv"]),
    (("runs", "store.sqlite", "--plot", "cactus"), ["--plot: expected --plot KIND and --plot-file FILE"]),
    (("runs", "store.sqlite", "--plot", "cacti", "--plot-file", "p.png"), ["did you mean 'cactus'?"]),
    (
        ("runs", "store.sqlite", "--plot", "cactus", "--plot-file", "p.gif"),
        ["p.gif: expected a file that ends", ".png"],
    ),
    (("runs", "store.sqlite", "--plot", "energy", "--plot-file", "p.png"), ["one problem", "--layer"]),
    (("runs", "store.sqlite", "--report", "r.txt"), ["r.txt", ".html"]),
    (("list", "suits"), ["did you mean 'suites'?"]),
]


@pytest.mark.parametrize(("args", "told"), BAD, ids=lambda value: " ".join(value)[:70])
def test_bad_input(call: Call, copied_store: Path, args: tuple[str, ...], told: list[str]) -> None:
    """One line that names what is wrong, exit code 2, no file left behind."""
    folder = Path.cwd()
    copied_store.rename(folder / "store.sqlite")
    (folder / "text.sqlite").write_text("not a database, but long enough to look like one")
    before = sorted(folder.iterdir())
    outcome = call(*args)
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    for part in told:
        assert part in line
    assert sorted(folder.iterdir()) == before


def test_list_suites(call: Call) -> None:
    """Every suite with its layers, in every format."""
    rows = call("list", "suites", "-f", "json").document
    assert {"standard", "dmazerunner", "resnet50", "vgg19", "bert-base", "gpt-2", "primes", "random"} <= {
        row["suite"] for row in rows
    }
    assert next(row for row in rows if row["suite"] == "resnet50")["layers"] == 54
    assert max(map(len, call("list", "suites").out.splitlines())) <= 80
