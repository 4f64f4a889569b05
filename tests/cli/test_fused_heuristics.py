"""Heuristics for fused mappings at the command line: ``map --fuse --solver`` and ``bench --fuse``."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from calls import Call, start

PAIR = """\
- {name: qk, layer: "gemm:M=16,N=16,K=4"}
- {name: av, layer: "gemm:M=16,N=4,K=16", reads: {A: qk}}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two layers of which one reads the other."""
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    return path


def test_a_heuristic_writes_a_document_that_holds(call: Call, model: Path, tmp_path: Path) -> None:
    """The document names the heuristic, has a bound below its value, and passes the check."""
    out = tmp_path / "greedy.json"
    flags = ("-a", "tpu-edge", "--fuse", "--factors", "perfect", "--out", out)
    outcome = call("map", model, *flags, "--solver", "greedy")
    assert outcome.code == 0, outcome.err
    document = json.loads(out.read_text())
    assert document["settings"]["solver"] == "greedy"
    assert document["totals"]["bound"] < document["totals"]["value"] <= document["totals"]["unfused_value"]
    assert call("check", out).code == 0
    outcome = call("map", model, *flags, "--solver", "gready")
    assert outcome.code == 2
    assert "--solver: unknown name 'gready'" in outcome.err


def test_bench_has_a_row_per_run_beside_the_optimum(call: Call, model: Path) -> None:
    """The optimum, each heuristic and each seed, with gaps to what is proven."""
    asked = ("bench", model, "-a", "tpu-edge", "-o", "energy", "--factors", "perfect", "--fuse")
    asked = (*asked, "--seeds", "2", "--method", "greedy,annealing[steps=5]")
    outcome = call(*asked, "-f", "json", "-q")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("optimum", 0),
        ("greedy", 0),
        ("annealing[steps=5]", 0),
        ("annealing[steps=5]", 1),
    ]
    assert rows[0]["gap"] == 0
    assert all(row["proven"] and row["value"] >= rows[0]["value"] for row in rows)
    assert all(row["gap"] == pytest.approx(row["value"] / rows[0]["value"] - 1) for row in rows)
    # The same again has nothing to run; a run that is asked for anew is alone.
    again = call(*asked, "-f", "json")
    assert json.loads(again.out) == rows
    assert again.err == ""
    outcome = call(*asked, "-f", "json", "--seeds", "3")
    assert outcome.err.strip().splitlines() == ["pair tpu-edge energy: annealing[steps=5], seed 2"]
    alone = (*asked[:-1], "greedy", "--optimum", "none", "-f", "json")
    assert call(*alone, "-q").err == call(*alone).err == ""
    assert len(call(*alone, "--fresh").err.strip().splitlines()) == 1
    unproven = call(*asked[:-1], "greedy", "--optimum", "none", "-q", "-f", "markdown").out
    assert "| pair | tpu-edge | greedy | 0 |" in unproven
    assert "≤" in unproven
    assert "optimum" not in unproven
    table = call(*asked[:-1], "greedy", "--optimum", "none", "-q").out
    assert all(head in table for head in ("method", "seed", "unfused", "gap", "CPU s"))


def test_a_killed_bench_goes_on_where_it_was(call: Call, model: Path, tmp_path: Path) -> None:
    """kill -9 while the second of three runs begins loses no finished one, whose document holds."""
    asked = ("bench", model, "-a", "tpu-edge", "-o", "energy", "--factors", "perfect", "--fuse")
    asked = (*asked, "--method", "greedy,annealing[steps=100000]", "--seeds", "1", "--out", "runs.sqlite")
    process = start(tmp_path, *asked)
    assert process.stderr is not None
    begun = [process.stderr.readline() for _ in range(3)]
    process.kill()
    process.communicate()
    assert "annealing" in begun[2]
    asked = ("greedy,annealing[steps=5]" if "," in str(word) else word for word in asked)
    outcome = call(*asked, "-f", "json")
    assert outcome.err.strip().splitlines() == ["pair tpu-edge energy: annealing[steps=5], seed 0"]
    assert [row["method"] for row in json.loads(outcome.out)] == ["optimum", "greedy", "annealing[steps=5]"]
    with sqlite3.connect(tmp_path / "runs.sqlite") as base:
        kept = base.execute("SELECT document FROM run WHERE method = 'optimum'").fetchone()[0]
    (tmp_path / "kept.json").write_text(kept)
    assert call("check", "kept.json").code == 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--jobs", "2"), "--jobs: cannot be used with --fuse"),
        (("--optimum", "cpsat"), "--optimum: expected auto or none with --fuse, got 'cpsat'"),
        (("--out", "runs.txt"), "runs.txt"),
        (("--method", "genetic"), "--method: unknown name 'genetic'"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    call: Call, model: Path, flags: tuple[str, ...], told: str
) -> None:
    """One line names the flag, with exit code 2."""
    outcome = call("bench", model, "-a", "tpu-edge", "--fuse", *flags)
    assert outcome.code == 2
    assert told in " ".join(outcome.err.split())
