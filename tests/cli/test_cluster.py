"""The same cells on a Dask cluster: a scheduler and two workers in processes of their own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, Popen

import pytest
from calls import Call, finish, start

from tilewright.foundation import cluster

pytest.importorskip("distributed")

BENCH = (
    "tiny",
    "-a",
    "nvdla-256",
    "-o",
    "edp",
    "-m",
    "random[victory=5],branch",
    "--seeds",
    "2",
    "--factors",
    "perfect",
    "--optimum",
    "branch",
    "-t",
    "60",
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The scheduler of a cluster of two worker processes."""
    reported = tmp_path / "scheduler.json"
    scheduler = (
        "dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        reported,
    )
    worker = ("dask_worker", "--scheduler-file", reported, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    processes = [
        Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", *map(str, rest)],
            cwd=tmp_path,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        for name, *rest in (scheduler, worker, worker)
    ]
    try:
        while not reported.exists():
            assert processes[0].poll() is None
            time.sleep(0.05)
        yield json.loads(reported.read_text())["address"]
    finally:
        for process in reversed(processes):  # a worker takes its leave of a scheduler that still listens
            process.terminate()
            process.wait()


@pytest.mark.slow
def test_cluster_gives_the_same_table(call: Call, tmp_path: Path, address: str) -> None:
    """Both workers answer, and values, statuses and mappings are those of a local run."""
    away = finish(start(tmp_path, "bench", *BENCH, "--cluster", address, "--out", "away.sqlite"))
    assert away.code == 0, away.err
    here = call("bench", *BENCH, "--jobs", "1", "--out", tmp_path / "here.sqlite")
    assert here.code == 0, here.err
    tables = [call("runs", tmp_path / f"{name}.sqlite", "-f", "json").document for name in ("away", "here")]
    timed = {"seconds_10", "seconds_1", "seconds_0", "primal_integral_s", "wall_s", "ended"}
    timed |= {"nodes", "nodes_per_s", "trees", "table_mb", "peak_memory_mb"}  # with several threads
    first, second = ([{k: v for k, v in row.items() if k not in timed} for row in table] for table in tables)
    assert first == second
    assert len(first) == 20
    again = call("bench", *BENCH, "--cluster", address, "--out", tmp_path / "away.sqlite")
    assert "15 runs, 15 of them in " in again.err


def test_no_scheduler_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where nobody answers, and one that is none, are bad input in one line."""
    monkeypatch.setattr(cluster, "_CONNECT", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere at all"):
        outcome = call("bench", *BENCH, "--cluster", address)
        assert outcome.code == 2
        assert f"--cluster: {address}: no Dask scheduler answers" in outcome.err
        assert len(outcome.err.splitlines()) == 1


EXPLORE = (
    "explore",
    "gemm:M=4,N=16,K=32",
    "-a",
    "dmazerunner-256",
    "--vary",
    "levels.SPM.capacity=16kB,64kB",
    "--vary",
    "levels.RF.capacity=16B..64B*2",
)


@pytest.mark.slow
def test_explorations_on_a_cluster(tmp_path: Path, address: str) -> None:
    """A cluster's workers prove the same best design, and values, as this process does."""
    flags = ("--values", "-q", "-f", "json")
    outcomes = [
        finish(start(tmp_path, *EXPLORE, *flags, *where))
        for where in (("--cluster", address), ("--jobs", "1"))
    ]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes[0].err
    away, here = (outcome.document for outcome in outcomes)
    assert away["complete"]
    assert here["complete"]
    assert away["best"]["value_exact"] == here["best"]["value_exact"]
    assert all(design["value"] is not None for design in away["designs"])
