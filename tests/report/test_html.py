"""The HTML report: complete in itself, escaped, and sorting where a browser is at hand."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.benchmarks.page import write_report
from tilewright.benchmarks.rows import read_rows
from tilewright.benchmarks.store import Store
from tilewright.cli.main import run
from tilewright.report.html.page import Column, Table, number_cell, render_page, text_cell

pytest.importorskip("plotly")
pytest.importorskip("jinja2")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

PROBE = """
<script>
const told = {};
const table = document.getElementById("section-0-table");
const column = (index) => Array.from(table.tBodies[0].rows, (row) => row.cells[index].textContent);
const click = (index) => table.tHead.rows[0].cells[index].querySelector("button").click();
told.before = column(4);
click(4); told.rising = column(4); told.order = table.tHead.rows[0].cells[4].getAttribute("aria-sort");
click(4); told.falling = column(4);
click(1); told.names = column(1);
told.plots = document.querySelectorAll(".plot .main-svg").length;
const search = document.querySelector("input[type=search]");
search.value = "tpu-edge branch"; search.dispatchEvent(new Event("input"));
told.found = document.getElementById(search.dataset.table + "-count").textContent;
const chooser = document.querySelector("select");
chooser.selectedIndex = 2; chooser.dispatchEvent(new Event("change"));
told.curves = document.getElementById(chooser.dataset.plot).data.length;
const place = document.createElement("pre");
place.id = "told"; place.textContent = JSON.stringify(told); document.body.append(place);
</script>
"""


@pytest.fixture
def report(filled_store: Path, tmp_path: Path) -> Path:
    """The report of the small store."""
    path = tmp_path / "report.html"
    with Store(filled_store) as store:
        write_report(path, store, read_rows(store))
    return path


def test_report_stands_alone(report: Path) -> None:
    """No script, style, image or font is loaded from elsewhere."""
    text = report.read_text()
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*?\s(?:src|href)\s*=", text)
    assert "@import" not in text.split("</style>")[0]
    assert text.count("<section") == text.count("</section>") >= 8


def test_report_has_every_run(report: Path, filled_store: Path) -> None:
    """One row per run in the last table, with the number it is sorted by; figures that JSON can hold."""
    text = report.read_text()
    with Store(filled_store) as store:
        count = len(read_rows(store))
    last = text.rsplit("<tbody>", 1)[1]
    assert last.count("<tr>") == count
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', text, re.S)[-1])
    assert all(figure["data"] and figure["layout"] for some in figures.values() for figure in some)


def test_names_are_escaped() -> None:
    """A layer whose name is markup stays text."""
    table = Table("t", [Column("a"), Column("b", True)], [[text_cell("<b>x</b>"), number_cell("-", None)]])
    text = render_page("<i>title</i>", ["a & b"], [table])
    assert "<b>x" not in text
    assert "&lt;b&gt;x" in text
    assert "a &amp; b" in text
    assert 'data-order=""' in text


def test_report_of_a_mapping(tmp_path: Path) -> None:
    """``map --report`` writes its layers, their energy and the course of every search."""
    path = tmp_path / "map.html"
    layers = tmp_path / "net.yaml"
    layers.write_text("- gemm:M=8,N=4,K=8,name=first\n- conv:K=4,C=4,P=4,Q=4,R=3,S=3,name=second\n")
    assert run(["map", str(layers), "-a", "tpu-edge", "-q", "--report", str(path)]) == 0
    text = path.read_text()
    totals, listed, *_ = text.split("<tbody>")[1:]
    assert listed.split("</tbody>")[0].count("<tr>") == 2
    assert "124.8 nJ" in totals.split("</tbody>")[0]
    assert f"tilewright map {layers} -a tpu-edge -q --report {path}" in text
    assert text.count("<details") == text.count("<pre") == 2
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', text, re.S)[-1])
    energy, latency, roofline, convergence = figures.values()
    assert [len(some) for some in (energy, latency, roofline, convergence)] == [3, 1, 1, 2]
    sums = [sum(size for bar in figure["data"] for size in bar["x"]) for figure in energy]
    assert sums == pytest.approx([124.8e-9] * 3, rel=1e-3)
    assert sum(size for bar in latency[0]["data"] for size in bar["x"]) == 200
    assert run(["map", str(layers), "-a", "tpu-edge", "-q", "--report", "none/map.html"]) == 2


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.slow
def test_sorting_searching_and_plots_in_a_browser(report: Path, tmp_path: Path) -> None:
    """Clicks on a heading sort by number and by name, a search leaves what it should, all plots are drawn."""
    assert BROWSER is not None
    page = tmp_path / "probe.html"
    page.write_text(report.read_text().replace("</body>", PROBE + "</body>"))
    ran = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=10000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(html.unescape(re.findall(r'<pre id="told">(.*?)</pre>', ran.stdout, re.S)[0]))

    def numbers(texts: list[str]) -> list[float]:
        return [float(text.removesuffix(" %").removeprefix("<")) for text in texts]

    assert numbers(told["rising"]) == sorted(numbers(told["before"]))
    assert numbers(told["falling"]) == sorted(numbers(told["before"]), reverse=True)
    assert told["order"] == "ascending"
    assert told["names"] == sorted(told["names"])
    assert told["plots"] >= 5
    assert told["found"] == "6 of 72 rows"
    assert told["curves"] == 4
