"""``explore`` on the command line: files, formats, checks and bad calls."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from calls import Call, finish, start
from shipped import follows_schema

import tilewright as tw
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.records.schemas import EXPLORE, generated_schema, result_schema
from tilewright.report.text.quantities import objective_text

SPM, RF = "levels.SPM.capacity=16kB..64kB*4", "levels.RF.capacity=16B..64B*2"
LAYERS = """\
- {name: a, layer: "conv:N=1,K=8,C=8,P=7,Q=1,R=3,S=1", count: 2}
- {name: b, layer: "gemm:M=1,N=16,K=32"}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A file of two small layers, one of them twice."""
    path = tmp_path / "layers.yaml"
    path.write_text(LAYERS)
    return str(path)


def test_command_line(call: Call, model: str, tmp_path: Path) -> None:
    """Table, JSON, CSV, plot, page and check of one exploration, by the schema that ships."""
    base = ("explore", model, "-a", "dmazerunner-256", "--vary", SPM, "--vary", RF)
    files = {name: tmp_path / f"e.{name}" for name in ("json", "csv", "svg", "html")}
    outcome = call(
        *base,
        "--out",
        files["json"],
        "--plot",
        files["svg"],
        "--report",
        files["html"],
        "--against",
        "capacity",
        "--objective",
        "sum-edp",
    )
    assert outcome.code == 0, outcome.err
    assert "proven optimal" in outcome.out
    assert "proven complete" in outcome.out
    assert all(len(line) <= 80 for line in outcome.out.splitlines())
    assert "plotly" in files["html"].read_text()
    assert "svg" in files["svg"].read_text()
    document = json.loads(files["json"].read_text())
    follows_schema(document, EXPLORE)
    assert result_schema(EXPLORE) == generated_schema(ExploreDocument)
    assert call("check", files["json"]).code == 0
    csv = call(*base, "--format", "csv", "-q").out.splitlines()
    assert len(csv) == 7
    assert csv[0].startswith("index,levels.SPM.capacity,levels.RF.capacity,status,value")


def unsolved(document: dict[str, Any]) -> dict[str, Any]:
    """A design that is discarded; which ones are depends on how long searches take."""
    return next(design for design in document["designs"] if design["status"] == "discarded")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["best"].update(value=1, value_exact="1"), "best"),
        (lambda d: d["best"].update(optimal=False), "best: value, bound"),
        (lambda d: unsolved(d).update(status="solved"), "status: solved"),
        (lambda d: d["designs"][1]["fields"].update({"levels.RF.capacity": "1 kB"}), "fields"),
        (lambda d: d["designs"][2].update(pes=7), "pes: 7"),
        (lambda d: d["machine_file"]["levels"][0].update(energy=1), "best.result.arch"),
        (lambda d: d["best"]["result"]["layers"][0].update(value=1), "value: 1"),
        (lambda d: d["totals"]["statuses"].update(solved=9), "totals.statuses"),
    ],
)
def test_changed_documents_fail_the_check(
    call: Call, explored: dict[str, Any], tmp_path: Path, change: Any, told: str
) -> None:
    """A claim that does not follow from the document is told, with exit code 5."""
    document = json.loads(json.dumps(explored))
    change(document)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    outcome = call("check", path)
    assert outcome.code == 5, outcome.err
    assert told in " ".join(outcome.out.split())


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A document to change."""
    path = tmp_path_factory.mktemp("explored") / "layers.yaml"
    path.write_text(LAYERS)
    axes = dict(axis.split("=") for axis in (SPM, RF))
    exploration = tw.explore(str(path), "dmazerunner-256", axes, "sum-edp")
    return json.loads(json.dumps(exploration.to_dict()))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--vary", "levels.SPX.capacity=1kB,2kB"), "did you mean 'SPM'"),
        (("--vary", "levels.SPM.capacity=3kB"), "all 1 designs"),
        (("--vary", SPM, "--objective", "E^0.5*D"), "whole powers"),
        (("--vary", SPM, "--solver", "random"), "proves nothing"),
        (("--vary", SPM, "--against", "GLB.capacity"), "--against"),
        (("--vary", SPM, "--store", "x.txt"), "x.txt"),
        (("--vary", SPM, "--out", "x.yaml"), "x.yaml"),
        ((), "--vary"),
    ],
)
def test_bad_calls_are_one_line(call: Call, model: str, flags: tuple[str, ...], told: str) -> None:
    """What is wrong is told before anything is searched, with exit code 2."""
    outcome = call("explore", model, "-a", "dmazerunner-256", *flags)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
    assert told in outcome.err


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    """A process that is killed leaves every proof; the same call goes on from them to the same answer."""
    axes = ("--vary", "levels.SPM.capacity=16kB..256kB*2", "--vary", "levels.RF.capacity=16B..256B*2")
    base = ("explore", "conv:N=1,K=32,C=32,P=14,Q=14,R=3,S=3", "-a", "dmazerunner-256", *axes, "-f", "json")
    flags = ("--store", "kept.sqlite", "--jobs", "2")
    process = start(tmp_path, *base, *flags)
    kept = tmp_path / "kept.sqlite"
    while rows(kept) < 3:
        assert process.poll() is None, "was done before it could be killed"
        time.sleep(0.05)
    process.kill()
    finish(process)
    before = rows(kept)
    resumed = finish(start(tmp_path, *base, *flags)).document
    whole = finish(start(tmp_path, *base, "--jobs", "1")).document
    assert resumed["complete"]
    assert resumed["best"]["value_exact"] == whole["best"]["value_exact"]
    assert before >= 3
    assert resumed["totals"]["cells"]["kept"] >= 1


def rows(path: Path) -> int:
    """Proofs that a store holds; none while another process writes its tables."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as base, suppress(sqlite3.Error):
        return int(base.execute("SELECT count(*) FROM cell").fetchone()[0])
    return 0


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("SPM.capacity", "levels.SPM.capacity?"),
        ("capacity", "levels.SPM.capacity or levels.RF.capacity?"),
        ("fanout.axes.pe.size", "levels.SPM.fanout.axes.pe.size?"),
    ],
)
def test_a_path_without_its_beginning_is_suggested(call: Call, field: str, meant: str) -> None:
    """A field named from inside a level gives the whole path in one line."""
    outcome = call("explore", "gemm:M=4,N=4,K=4", "-a", "dmazerunner-256", "--vary", f"{field}=64,128")
    assert outcome.code == 2
    assert f"did you mean {meant}" in outcome.err


def test_progress_has_the_best_so_far(call: Call) -> None:
    """Each line of progress has the least value of a whole design so far, the last one the answer's."""
    outcome = call(
        *("explore", "gemm:M=8,N=8,K=8", "-a", "dmazerunner-256", "--vary", "levels.SPM.capacity=64kB,128kB"),
        *("-v", "--every", "--format", "json"),
    )
    assert outcome.code == 0
    lines = [line for line in outcome.err.splitlines() if "searches" in line or "search," in line]
    assert lines
    assert all(" left (" in line for line in lines)
    bests = [line.partition("best edp ")[2].partition(",")[0] for line in lines if "best edp" in line]
    value = outcome.document["best"]["value"]
    assert bests[-1] == objective_text(parse_objective("edp"), value)
