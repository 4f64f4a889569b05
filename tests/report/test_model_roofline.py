"""The roofline of a whole model: kinds of layers and phases add up to the totals, and no limit is beaten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.report.records.mapping.layer_kinds import kind_of
from tilewright.report.records.mapping.model_roofline import has_kinds


@pytest.fixture(scope="module")
def mapped() -> Any:
    """Two prompts and four steps of the first block's attention."""
    layers = ["block1.attention.*", "block1.attention_norm"]
    return tw.map_network(
        "gpt2[tokens=4,batch=2]", "nvdla-256", "edp", phases="prefill:2,decode:4", lengths=2, layers=layers
    )


def test_kinds_add_up_and_keep_their_limits(mapped: Any) -> None:
    """Seconds, energy and layers of all kinds are the totals; no kind is faster than both limits."""
    rows, totals = mapped.kind_rows(), mapped.to_dict()["totals"]
    assert sum(row["seconds"] for row in rows) == pytest.approx(totals["time_s"])
    assert sum(row["energy_pj"] for row in rows) == pytest.approx(totals["energy_pj"])
    assert sum(row["layers"] for row in rows) == totals["layers"]
    assert {row["phase"] for row in rows} == {"prefill", "decode"}
    for row in rows:
        assert row["seconds"] >= max(row["compute_seconds"], row["transfer_seconds"]) * (1 - 1e-12)
        assert row["proven"] == row["layers"]
    for phase in ("prefill", "decode"):
        assert sum(row["share"] for row in rows if row["phase"] == phase) == pytest.approx(1)


def test_whether_there_are_kinds_is_known_without_their_figures(mapped: Any) -> None:
    """Of layers of one kind, nothing is counted for a table that would have one row."""
    alone = tw.map_network("gpt2[tokens=4]", "nvdla-256", "edp", layers=["block1.attention.query"])
    for document in (mapped, alone):
        assert has_kinds(document.record) == (len({row["kind"] for row in document.kind_rows()}) > 1)
    assert has_kinds(mapped.record)
    assert not has_kinds(alone.record)


def test_phases_are_told_of_one_run(mapped: Any) -> None:
    """Time is of a prompt or of a step, energy of one sequence of the two."""
    rows = {row["phase"]: row for row in mapped.phase_rows()}
    for phase, runs in (("prefill", 2), ("decode", 4)):
        own = [row for row in mapped.kind_rows() if row["phase"] == phase]
        assert rows[phase]["runs"] == runs
        assert rows[phase]["seconds"] == pytest.approx(sum(row["seconds"] for row in own) / runs)
        assert rows[phase]["energy_pj"] == pytest.approx(sum(row["energy_pj"] for row in own) / runs / 2)


def test_pages_and_tables_show_them(mapped: Any, tmp_path: Path) -> None:
    """The page has a section of kinds, the text their table and a line for each phase."""
    pytest.importorskip("plotly")
    mapped.save_report(tmp_path / "page.html")
    assert "Kinds of layers" in (tmp_path / "page.html").read_text()
    text = str(mapped)
    assert "to the first token" in text
    assert "for a token of each sequence" in text
    assert "of limit" in text


def test_pictures_name_kinds_and_phases(mapped: Any, tmp_path: Path) -> None:
    """As SVG every kind of both phases, both limits and the roofs' axes are texts; a layer alone is drawn."""
    pytest.importorskip("matplotlib")
    mapped.save_plot(tmp_path / "kinds.svg")
    text = (tmp_path / "kinds.svg").read_text()
    for row in mapped.kind_rows():
        assert f"{row['phase']} {row['kind']}" in text
    for label in ("limit of PEs", "limit of DRAM", "operations per byte", "prefill:2,decode:4"):
        assert label in text
    alone_mapped = tw.solve(tw.layer("gemm:name=mine,M=4,N=4,K=4").on("nvdla-256"))
    alone_mapped.document.save_plot(tmp_path / "alone.svg")
    alone = (tmp_path / "alone.svg").read_text()
    assert "mine" in alone
    assert "others" not in alone


def test_kinds_are_read_from_names() -> None:
    """With a phase before a name or without, the kind is the same."""
    for name, kind in (
        ("words_out", "words"),
        ("block1.attention.scores", "attention"),
        ("last_norm", "others"),
    ):
        assert kind_of(name) == kind_of(f"decode[cached=7..9].{name}") == kind
