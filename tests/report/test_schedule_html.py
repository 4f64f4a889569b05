"""The HTML reports of ``schedule`` and ``codesign``: every layer and partition, complete in itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from systems import SYSTEM

from tilewright.cli.main import run
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.report.html.page import Column, Table, text_cell
from tilewright.report.pareto import pareto_front

pytest.importorskip("plotly")
pytest.importorskip("jinja2")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LAYERS = "- conv:K=8,C=4,P=8,Q=8,R=3,S=3,name=<first>\n- gemm:M=1,N=16,K=32,name=second\n"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two runs of a small network, a small system, and a class with a small grid."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    Path("net.yaml").write_text(LAYERS)
    Path("work.yaml").write_text("networks: [{name: net, model: net.yaml, batches: 2}]")
    Path("system.yaml").write_text(SYSTEM)


def figures(text: str) -> list[Any]:
    """The figures of a report, in their sequence."""
    figures_by_id = json.loads(re.findall(r'id="figures">(.*?)</script>', text, re.S)[-1])
    return [some[0] for some in figures_by_id.values()]


def test_report_of_a_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    """The chart has a bar per layer where the schedule has it, the memory its steps, the table its rows."""
    args = ["schedule", "work.yaml", "--system", "system.yaml", "-q", "--threads", "1", "-f", "json"]
    assert run([*args, "--report", "r.html"]) == 0
    document = json.loads(capsys.readouterr().out)
    text = Path("r.html").read_text()
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*?\s(?:src|href)\s*=", text)
    assert text.rsplit("<tbody>", 1)[1].count("<tr>") == len(document["schedule"]) == 4
    assert "<first>" not in text.rsplit("<tbody>", 1)[1]
    gantt, memory, _ = figures(text)
    (bars,) = gantt["data"]
    ends = [round((base + length) * 1e9) for base, length in zip(bars["base"], bars["x"], strict=True)]
    assert ends == [row["end"] for row in document["schedule"]]
    assert bars["y"] == [row["engine"] for row in document["schedule"]]
    in_use, capacity = memory["data"]
    assert max(in_use["y"]) == document["metrics"]["peak_memory_bytes"] / 2**20
    assert capacity["y"][0] == document["system"]["memory_bytes"] / 2**20


def test_report_of_a_codesign(capsys: pytest.CaptureFixture[str]) -> None:
    """The scatter has a dot per partition and their front; partitions and layers have a row each."""
    args = ["codesign", "work.yaml", "--class", "edge", "-q", "--threads", "1", "-f", "json"]
    assert run([*args, "--report", "r.html"]) == 0
    document = json.loads(capsys.readouterr().out)
    text = Path("r.html").read_text()
    bodies = [body.split("</tbody>")[0] for body in text.split("<tbody>")]
    assert bodies[1].count("<tr>") == len(document["points"]) == 9
    assert bodies[-1].count("<tr>") == 4
    quick, exact, front, best = figures(text)[0]["data"]
    assert len(quick["x"]) + len(exact["x"]) == 9
    assert best["x"] == pytest.approx([document["best"]["metrics"]["makespan"] * 1e-9])
    points = [(point["cycles"] * 1e-9, point["energy_pj"] * 1e-12) for point in document["points"]]
    for point in zip(front["x"], front["y"], strict=True):
        assert not any(a <= point[0] and b <= point[1] and (a, b) != point for a, b in points)


def test_pareto_front() -> None:
    """Points that another one equals or beats in both figures are left out."""
    assert pareto_front([(2, 2), (1, 3), (2, 1), (3, 1), (1, 3)]) == [(1, 3), (2, 1)]
    assert pareto_front([]) == []


def test_report_needs_its_suffix(capsys: pytest.CaptureFixture[str]) -> None:
    """A report that could not be written is refused before anything is computed."""
    for path in ("r.txt", "none/r.html"):
        assert run(["schedule", "work.yaml", "--system", "system.yaml", "--report", path]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.slow
def test_plots_are_drawn_in_a_browser(tmp_path: Path) -> None:
    """Every plot of a co-design's report appears, with one bar per layer."""
    assert BROWSER is not None
    args = ["codesign", "work.yaml", "--class", "edge", "-q", "--threads", "1", "--report", "r.html"]
    assert run(args) == 0
    ran = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=10000",
            "--dump-dom",
            (tmp_path / "r.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    page = ran.stdout.rsplit("</script>", 1)[0]
    assert len(re.findall(r'class="main-svg"', page)) >= len(figures((tmp_path / "r.html").read_text()))
    assert page.count('class="barlayer mlayer"') >= 1
    assert len(re.findall(r'<g class="point">', page)) == 4


def test_every_cell_stands_under_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a table's heading says is what the document has there, as many cells as headings."""
    args = ["schedule", "work.yaml", "--system", "system.yaml", "-q", "--threads", "1", "-f", "json"]
    assert run([*args, "--report", "r.html"]) == 0
    document = json.loads(capsys.readouterr().out)
    table = Path("r.html").read_text().rsplit("<thead>", 1)[1]
    headings = [re.sub("<.*?>", "", heading).strip() for heading in re.findall(r"<th\b.*?</th>", table, re.S)]
    assert headings == [
        "run",
        "layer",
        "sub-accelerator",
        "dataflow",
        "fetch",
        "start",
        "end",
        "cycles",
        "energy",
        "memory",
    ]
    rows = [re.findall(r"<td\b.*?</td>", row, re.S) for row in re.findall(r"<tr>.*?</tr>", table, re.S)]
    rows = [row for row in rows if row]
    assert len(rows) == 4
    for cells, placed in zip(rows, document["schedule"], strict=True):
        shown = dict(zip(headings, (re.sub("<.*?>", "", cell).strip() for cell in cells), strict=True))
        assert shown["start"].replace(",", "") == str(placed["start"])
        assert shown["end"].replace(",", "") == str(placed["end"])
        assert shown["memory"].replace(",", "") == str(placed["memory_bytes"])
        assert shown["energy"].endswith("J")


def test_a_row_of_another_length_is_refused() -> None:
    """A table that is not as wide as its headings is never written."""
    with pytest.raises(ValueError, match="1 cells under 2 headings"):
        Table("odd", [Column("a"), Column("b")], [[text_cell("x")]])
