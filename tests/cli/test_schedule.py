"""The verbs ``schedule`` and ``codesign``: documents, exit codes, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import Call
from shipped import follows_schema
from systems import LAYERS, SYSTEM

from tilewright.cli.main import run
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument
from tilewright.report.records.schemas import CODESIGN, SCHEDULE, generated_schema, result_schema


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model and a small system in an empty folder, and cost tables of their own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)


@pytest.mark.parametrize("objective", ["makespan", "energy", "edp"])
def test_document_holds_a_proven_schedule(call: Call, objective: str) -> None:
    """A small problem is solved to optimality; the document meets its schema and adds up."""
    out = call(
        "schedule", "model.yaml", "--system", "system.yaml", "-o", objective, "-f", "json", "--threads", 1
    )
    assert out.code == 0
    document = json.loads(out.out)
    follows_schema(document, SCHEDULE)
    assert (document["status"], document["gap"], document["tasks"]) == ("optimal", 0.0, 3)
    metrics = document["metrics"]
    assert metrics["makespan"] == max(placement["end"] for placement in document["schedule"])
    assert metrics["energy_pj"] == sum(placement["energy_pj"] for placement in document["schedule"])
    figures = {"makespan": "makespan", "energy": "energy_pj", "edp": "edp"}
    assert document["value"] == metrics[figures[objective]]


def test_heuristics_report_feasible_with_a_bound(call: Call) -> None:
    """Herald and greedy never claim more than their bound allows, and cpsat is at least as good."""
    values = {}
    for method in ("cpsat", "herald", "greedy"):
        out = call(
            "schedule", "model.yaml", "--system", "system.yaml", "-m", method, "-f", "json", "--threads", 1
        )
        document = json.loads(out.out)
        assert document["bound"] <= document["value"]
        values[method] = document["value"]
    assert values["cpsat"] == min(values.values())


def test_figures_and_file_are_written(call: Call, tmp_path: Path) -> None:
    """Charts and the document land where asked for; the table goes to stdout."""
    out = call(
        "schedule",
        "model.yaml",
        "--system",
        "system.yaml",
        "--gantt",
        "gantt.png",
        "--occupancy",
        "memory.svg",
        "--out",
        "schedule.json",
        "--threads",
        1,
    )
    assert out.code == 0
    assert "sub-accelerator" in out.out
    assert (tmp_path / "gantt.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "memory.svg").read_text()
    ScheduleDocument.model_validate_json((tmp_path / "schedule.json").read_text())


def test_a_layer_too_large_is_infeasible(call: Call, tmp_path: Path) -> None:
    """Exit code 3, and the reason names the layer."""
    (tmp_path / "tiny.yaml").write_text(SYSTEM.replace("16 kB", "64 B"))
    out = call("schedule", "model.yaml", "--system", "tiny.yaml", "-f", "json", "--threads", 1)
    document = json.loads(out.out)
    assert (out.code, document["status"]) == (3, "infeasible")
    assert "fits on no engine" in document["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ar-vr-c", "--system", "hda-edge-maelstrom"], "did you mean 'ar-vr-"),
        (["model.yaml", "--system", "hda-edge-maelstron"], "did you mean 'hda-edge-maelstrom'"),
        (["model.yaml", "--system", "system.yaml", "-o", "cycles"], "--objective"),
        (["model.yaml", "--system", "system.yaml", "-m", "heral"], "did you mean 'herald'"),
        (["model.yaml", "--system", "system.yaml", "--gantt", "a.txt"], "ends in one of: .png, .pdf, .svg"),
        (["model.yaml", "--system", "broken.yaml", "-m", "ls"], "broken.yaml: line 1"),
    ],
)
def test_faults_are_one_line(call: Call, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Exit code 2 and one line that says what was expected."""
    (tmp_path / "broken.yaml").write_text("grid: {width: 2")
    out = call("schedule", *arguments)
    assert out.code == 2
    assert words in out.err
    assert out.err.count("\n") == 1


@pytest.mark.parametrize(
    "where", ["--keep-activations", pytest.param("--store-activations", marks=pytest.mark.slow)]
)
def test_codesign_proves_the_best_partition(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The best of a small grid is proven, and equals the best of all partitions scheduled one by one."""
    small = AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2)
    monkeypatch.setitem(classes.CLASSES, "edge", small)
    out = call(
        "codesign",
        "model.yaml",
        "--class",
        "edge",
        "-o",
        "edp",
        "-f",
        "json",
        "--scatter",
        "s.png",
        "--threads",
        1,
        where,
        "--out",
        "design.json",
    )
    document = json.loads(out.out)
    follows_schema(document, CODESIGN)
    assert (out.code, document["status"], document["partitions"]) == (0, "optimal", 9)
    assert (tmp_path / "s.png").stat().st_size > 1000
    assert document["value"] == min(point["value"] for point in document["points"])
    kept = where == "--keep-activations"
    assert document["keep_activations"] == document["best"]["system"]["keep_activations"] == kept
    assert call("check", "design.json", "--prove", "--threads", 1).code == 0
    for point in document["points"][:: 4 if kept else 1]:
        text = SYSTEM
        for old, part in (
            ("pes: 16, bandwidth: 4 ", point["partition"][0]),
            ("pes: 16, bandwidth: 12 ", point["partition"][1]),
        ):
            text = text.replace(old, f"pes: {part['pes']:.0f}, bandwidth: {part['bytes_per_cycle']:.0f} ")
        (tmp_path / "one.yaml").write_text(text.replace("dram_bandwidth: 16", "dram_bandwidth: 8"))
        asked = ("schedule", "model.yaml", "--system", "one.yaml", "-o", "edp", "-f", "json", "--threads", 1)
        outcome = call(*asked, where)
        value = json.loads(outcome.out)["value"]
        assert point["bound"] <= value * (1 + 1e-12)
        assert document["value"] <= value * (1 + 1e-12)


def test_schemas_are_those_of_the_records() -> None:
    """The schema files were generated from the records."""
    assert result_schema(SCHEDULE) == json.loads(json.dumps(generated_schema(ScheduleDocument)))
    assert result_schema(CODESIGN) == json.loads(json.dumps(generated_schema(CodesignDocument)))


def test_systems_and_methods_are_listed(call: Call) -> None:
    """``list`` names the presets and the methods."""
    assert "hda-cloud-maelstrom-mlperf" in call("list", "systems").out
    assert "herald" in call("list", "methods").out
    assert run(["list", "workloads"]) == 0


def test_systems_are_shown(call: Call) -> None:
    """A preset and a file appear with their arrays."""
    assert "128x7" not in call("show", "hda-edge-maelstrom").out
    assert "28x32" in call("show", "hda-edge-maelstrom").out
    assert "deep" in call("show", "system.yaml").out
