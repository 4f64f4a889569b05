"""``show`` of what ``schedule`` and ``codesign`` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import Call
from systems import LAYERS, SYSTEM

from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.report.records.scheduling.herald.document import PlacementRecord
from tilewright.report.text.quantities import count_text
from tilewright.report.text.scheduling.herald.listing import time_lines


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model, a small system, a class with a small grid, and cost tables of their own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)


def test_a_schedule_is_shown(call: Call, tmp_path: Path) -> None:
    """The claim, every sub-accelerator with its line of time, and every layer at its place."""
    made = call("schedule", "model.yaml", "--system", "system.yaml", "--threads", 1, "--out", "s.json")
    assert made.code == 0
    out = call("show", "s.json")
    assert out.code == 0
    document = json.loads((tmp_path / "s.json").read_text())
    lines = out.out.splitlines()
    assert any(line.split()[:2] == ["status", "optimal"] for line in lines)
    for row in document["schedule"]:
        (line,) = [line for line in lines if line.split()[:1] == [row["task"]]]
        for field in ("start", "end", "fetch_start"):
            assert count_text(row[field]) in line.split()
        assert f"{row['engine']}/{row['layout']}" in line.split()
    assert sum(line.startswith(("deep  ", "wide  ")) for line in lines) == 4
    outcome = call("show", "s.json", "--layers", document["schedule"][0]["layer"])
    assert document["schedule"][1]["layer"] not in outcome.out
    wrong = call("show", "s.json", "--layers", "nothing")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)


def test_a_codesign_is_shown(call: Call) -> None:
    """The partitions, and the best one's schedule."""
    assert call("codesign", "model.yaml", "--class", "edge", "--threads", 1, "--out", "c.json").code == 0
    out = call("show", "c.json", "-v")
    assert out.code == 0
    assert "partitions" in out.out
    assert out.out.count("gemm") == 1


def test_documents_without_a_schedule_are_shown(call: Call, tmp_path: Path) -> None:
    """An infeasible one has its reason; an incomplete record is one line that names the field."""
    (tmp_path / "tiny.yaml").write_text(SYSTEM.replace("16 kB", "64 B"))
    assert call("schedule", "model.yaml", "--system", "tiny.yaml", "--out", "s.json").code == 3
    out = call("show", "s.json")
    assert out.code == 0
    assert "fits on no engine" in out.out
    (tmp_path / "broken.json").write_text('{"schema": "tilewright.schedule/1"}')
    broken = call("show", "broken.json")
    assert (broken.code, broken.err.count("\n")) == (2, 1)
    assert "broken.json" in broken.err


def test_lines_of_time() -> None:
    """A cell has the network that takes the most of it; nothing is idle that runs for half of it."""

    def row(instance: str, engine: str, start: int, end: int) -> PlacementRecord:
        return PlacementRecord(
            task=f"{instance}:x",
            instance=instance,
            layer="x",
            engine=engine,
            layout="",
            fetch_start=start,
            start=start,
            end=end,
            energy_pj=1,
            memory_bytes=0,
            fetch_bytes=0,
            sources={},
        )

    rows = [row("net/0", "e", 0, 32), row("other/1", "e", 32, 48), row("net/1", "f", 63, 64)]
    first, second, legend = map(str, time_lines(rows, ["e", "f"]))
    assert first == "e  " + "a" * 32 + "b" * 16 + "." * 16
    assert second == "f  " + "." * 63 + "a"
    assert legend.endswith("0 to 64 cycles; a net, b other; . idle")
    wide = [row("net/0", "e", 0, 10**12 + 1), row("net/1", "f", 10**12, 10**12 + 1)]
    assert str(time_lines(wide, ["e", "f"])[1]) == "f  " + "." * 64
