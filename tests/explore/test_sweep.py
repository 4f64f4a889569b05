"""A model whose parameters vary: points, shared layers, curves, and calls that cannot be answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from calls import caller

import tilewright as tw
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.sweep import sweep_lines

LAYERS = ["block1.attention.scores", "block1.attention.query"]
VARY = {"model.cached": "3,7"}
DECODE = "gpt2[phase=decode,batch=2]"


@pytest.fixture(scope="module")
def swept() -> Any:
    """Two lengths of the cache, on two machines each."""
    machines = {"levels.CBUF.capacity": "32kB,64kB"}
    return tw.sweep(DECODE, "nvdla-256", {**VARY, **machines}, "cycles", layers=LAYERS, jobs=1)


def test_points_are_those_of_explorations_one_by_one(swept: Any) -> None:
    """Value, bound and best machine of a point are what `explore` gives for that model alone."""
    for row, cached in zip(swept.rows(), (3, 7), strict=True):
        model = f"gpt2[phase=decode,batch=2,cached={cached}]"
        alone = tw.explore(
            model, "nvdla-256", {"levels.CBUF.capacity": "32kB,64kB"}, "cycles", layers=LAYERS, jobs=1
        )
        assert row["fields"] == {"model.cached": cached}
        assert (row["value"], row["bound"], row["design"]) == (alone.value, alone.bound, alone.fields)
        seconds = alone.mappings.cycles / 1e9
        assert row["seconds"] == pytest.approx(seconds)
        assert row["per_second"] == pytest.approx(2 / seconds)
        assert max(row["compute_seconds"], row["transfer_seconds"]) <= row["seconds"]


def test_layers_that_points_share_are_solved_once(swept: Any) -> None:
    """The projection does not depend on the cache, so the second point takes its proof from the first."""
    cells = [point.exploration.totals.cells for point in swept.record.points]
    assert cells[0]["kept"] == 0
    assert all(counts["kept"] >= 1 for counts in cells[1:])


def test_documents_are_read_checked_and_drawn(swept: Any, tmp_path: Path) -> None:
    """JSON, CSV, a picture and a page hold every point; the file passes its check."""
    for name in ("s.json", "s.csv"):
        swept.save(tmp_path / name)
    again = tw.load(tmp_path / "s.json")
    assert again.rows() == swept.rows()
    assert tw.check(tmp_path / "s.json").holds
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 3
    pytest.importorskip("matplotlib")
    swept.save_plot(tmp_path / "s.svg")
    assert "svg" in (tmp_path / "s.svg").read_text()
    swept.save_report(tmp_path / "s.html")
    assert "Curves" in (tmp_path / "s.html").read_text()


def test_command_line_sweeps_two_parameters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Axes of the model alone need no axis of the machine; lines are named by the others' values."""
    out = tmp_path / "s.json"
    asked = ("explore", "gpt2[phase=decode]", "-a", "nvdla-256", "-o", "cycles", "--layers", LAYERS[0], "-q")
    axes = ("--vary", "model.batch=1,2", "--vary", "model.cached=3,7", "--jobs", 1)
    outcome = caller(capsys)(*asked, *axes, "--out", out)
    assert outcome.code == 0, outcome.err
    assert "transfers" in outcome.out
    document = json.loads(out.read_text())
    assert [point["fields"] for point in document["points"]] == [
        {"model.batch": batch, "model.cached": cached} for batch in (1, 2) for cached in (3, 7)
    ]
    shown = caller(capsys)("show", out)
    assert shown.code == 0, shown.err
    assert shown.out.split("layers on machines")[0] == outcome.out.split("layers on machines")[0]
    assert caller(capsys)("show", out, "--plot", tmp_path / "s.xyz").code == 2
    read = tw.load(out)
    assert isinstance(read, tw.Sweep)
    assert [line.name for line in sweep_lines(read.record)] == ["batch 1", "batch 2"]


@pytest.mark.parametrize(
    ("model", "vary", "message"),
    [
        ("gpt2", {"model.bach": "1,2"}, "did you mean 'batch'"),
        ("resnet18", {"model.batch": "1,2"}, "has no parameters"),
        ("gpt2", {"model.batch": "0,2"}, "expected a whole number"),
        ("gpt2", {"model.batch:clock_mhz": "1:500,2:600"}, "varies model and machine together"),
        ("gpt2", {"clock_mhz": "500,600"}, "expected a parameter of the model"),
        ("gpt2", {}, "nothing varies"),
    ],
)
def test_points_that_cannot_be_are_one_line(model: str, vary: dict[str, str], message: str) -> None:
    """A fault is named before anything is searched."""
    with pytest.raises(InputError, match=message):
        tw.sweep(model, "nvdla-256", vary)
    if not any(field.startswith("model.") for field in vary):
        return
    with pytest.raises(InputError, match=r"tw\.sweep"):
        tw.explore(model, "nvdla-256", vary)
