"""The reports as people see them: in a real browser, on a desk and in a hand, by day and by night.

The pages are made by the commands with small limits.  ``tests/page_check.js`` says what is looked for, and
one test plants every fault that it looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Seen, browser, contrast, look

from tilewright.cli.main import run
from tilewright.report.html.figures import base_layout
from tilewright.report.html.page import Column, Plot, Table, number_cell, render_page, text_cell

pytest.importorskip("plotly")
pytest.importorskip("jinja2")
pytest.importorskip("playwright", reason="needs the extra `browser`")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium, chromium-browser or google-chrome on the path"),
]

LAYERS = """
- {layer: "conv:K=8,C=4,P=8,Q=8,R=3,S=3", name: stem}
- {layer: "conv:K=8,C=8,P=7,Q=7,R=1,S=1", name: a_rather_long_name_of_a_layer}
- {layer: "conv:K=4,C=8,P=4,Q=4,R=3,S=3", name: end, count: 3}
"""
PAIR = """
- {layer: "gemm:M=64,N=64,K=16", name: a_block_of_long_name.scores}
- {layer: "gemm:M=64,N=16,K=64", name: a_block_of_long_name.values, reads: {A: a_block_of_long_name.scores}}
"""
VARY = ["--vary", "levels.SPM.capacity=16kB..128kB*2", "--vary", "levels.RF.capacity=16B..1kB*2"]
SUITE = ["bench", "tiny", "-a", "tpu-edge", "--seeds", "2", "-t", "2", "-m", "random,annealing,kapla"]
COMMANDS: dict[str, list[list[str]]] = {
    "map": [["map", "net.yaml", "-a", "eyeriss-168", "-o", "edp", "--pareto", "--best", "3", "-t", "60"]],
    "fused": [["map", "pair.yaml", "-a", "tpu-edge", "--fuse", "--factors", "perfect", "-t", "60"]],
    "schedule": [["schedule", "mobilenet-v2", "--system", "hda-edge-maelstrom", "-m", "herald", "-t", "60"]],
    "plan": [["schedule", "net.yaml", "--system", "atomic-2x2", "-t", "30"]],
    "codesign": [["codesign", "net.yaml", "--class", "edge", "-t", "60"]],
    "bench": [[*SUITE, "-j", "1", "--out", "b.sqlite"], ["runs", "b.sqlite"]],
    "explore": [
        [
            *("explore", "gemm:M=64,N=64,K=64", "-a", "dmazerunner-256", "--against", "capacity"),
            *("--each-layer", "--objective", "edp", "-t", "90", "-j", "1", *VARY),
        ]
    ],
    "compare": [["compare", "net.yaml", "-s", "atomic-2x2", "-m", "ls,rammer,atomic", "-t", "3"]],
    "nothing": [["schedule", "resnet50", "--system", "atomic-8x8", "-t", "0.01"]],
}
"""By report, the calls that make it; the last one gets ``--report``."""
HEADS = {
    "map": ["Totals", "Layers", "Energy", "Latency", "Roofline", "Fronts", "Machine", "Convergence"],
    "fused": ["Totals", "Groups", "Fused groups", "Machine"],
    "schedule": ["Sub-accelerators", "Schedule", "Shared memory", "Convergence", "Layers"],
    "plan": ["Figures", "Engines", "Buffers", "Links", "Energy", "Convergence", "Layers", "All links"],
    "codesign": ["Partitions", "All partitions", "Sub-accelerators", "Schedule", "Layers"],
    "bench": ["Methods", "Proofs", "Solved against time", "Performance profile", "Gaps", "Energy", "Runs"],
    "explore": ["Designs", "Front of edp and capacity", "Best design for each layer alone", "All designs"],
    "compare": ["Methods", "Values", "Runs"],
    "nothing": ["Result"],
}


class Pages:
    """Reports in a folder, each made when it is first looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "net.yaml").write_text(LAYERS)
        (folder / "pair.yaml").write_text(PAIR)

    def __getitem__(self, name: str) -> Path:
        path = self._folder / f"{name}.html"
        if not path.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self._folder)
                patch.setenv("TILEWRIGHT_CACHE", str(self._folder / "costs"))
                calls = [[*call, *([] if call[0] == "runs" else ["-q"])] for call in COMMANDS[name]]
                calls[-1] += ["--report", path.name]
                assert [run(call) for call in calls][-1] in (0, 4)
        return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """All reports."""
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser without a past."""
    with browser(tmp_path_factory.mktemp("profile")) as page_browser:
        yield page_browser


def faults(seen: Seen) -> list[str]:
    """Everything that is wrong with a page, in words."""
    kinds = ("overflow", "overlaps", "clipped", "scrolls", "names", "tables", "small")
    faults = [f"{kind}: {text}" for kind in kinds for text in seen.reported[kind]]
    faults += [f"console: {text}" for text in seen.console]
    faults += [f"faint: {text}" for text in seen.faint()]
    faults += [f"empty plot: {plot['id']}" for plot in seen.reported["drawn"] if not plot["marks"]]
    if seen.reported["words"] < 40:
        faults.append(f"empty page: {seen.reported['words']} letters")
    roles = [role for role, _ in seen.tree]
    tables = roles.count("table") + roles.count("grid")
    if not tables or roles.count("columnheader") < 2 * tables:
        faults.append(f"accessibility tree: {tables} tables, {roles.count('columnheader')} heads of columns")
    faults += [
        f"no name: {role}" for role, name in seen.tree if role in ("image", "img", "figure") and not name
    ]
    return faults


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("report", [*COMMANDS])
def test_page(pages: Pages, opened: Any, report: str, width: int, theme: str) -> None:
    """Nothing is cut, covered, faint, nameless or empty, with the first and the second plot of every list."""
    path = pages[report]
    for choice in (0, 1) if "<select" in path.read_text() else (0,):
        seen = look(opened, path, width, theme, choice)
        assert not faults(seen), "\n".join(faults(seen))
        names = [name for role, name in seen.tree if role == "heading"]
        assert [name for name in HEADS[report] if name in names] == HEADS[report]


def test_page_follows_its_window(pages: Pages, opened: Any) -> None:
    """After the window has become another one, plots are as wide as it is and their axes as they were."""
    ranges = "Array.from(document.querySelectorAll('.plot'), (one) => one._fullLayout.xaxis.range)"
    page = opened.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(pages["bench"].as_uri())
    before = page.evaluate(ranges)
    page.set_viewport_size({"width": 1100, "height": 700})
    page.wait_for_timeout(600)
    widths = page.evaluate(
        "Array.from(document.querySelectorAll('.plot .main-svg'), (one) => one.clientWidth)"
    )
    after = page.evaluate(ranges)
    page.close()
    assert max(widths) <= 1100 - 2 * 20
    for width, other in zip(before, after, strict=True):
        assert width == pytest.approx(other, abs=0.2)


def test_paper(pages: Pages, opened: Any) -> None:
    """On paper a page is light whatever the screen is, fits, and leaves out what only clicks serve."""
    page = opened.new_page()
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 900})
    page.goto(pages["map"].as_uri())
    page.wait_for_timeout(300)
    reported = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, document.querySelector('nav').checkVisibility(), "
        "getComputedStyle(document.querySelector('.plot text')).fill, document.documentElement.scrollWidth]"
    )
    page.close()
    assert reported == ["rgb(255, 255, 255)", False, "rgb(27, 31, 36)", 700]


def test_planted_faults_are_found(opened: Any, tmp_path: Path) -> None:
    """Every kind of fault that pages are searched for is found where it is planted, and only there."""
    figure = {
        "data": [{"type": "scatter", "mode": "lines", "x": [1, 2], "y": [1, 2]}],
        "layout": base_layout("x", "y"),
    }
    rows = [[text_cell(f"row {i}"), number_cell(str(i), i)] for i in range(24)]
    sections = [
        Table("Numbers", [Column("name"), Column("n", True)], rows),
        Plot("A line", [("", figure)], "One."),
    ]
    sound = render_page("A page", ["that is sound"], sections)

    def seen(text: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(text)
        return "\n".join(faults(look(opened, path, 390, "light")))

    def drawn(script: str) -> str:
        return sound.replace("</body>", f"<script>setTimeout(() => {{ {script} }}, 50)</script></body>")

    assert not seen(sound)
    last = "const t = document.querySelectorAll('.plot text')"
    planted = {
        "overflow:": sound.replace("</main>", "<p style='width: 500px'>wide</p></main>"),
        "scrolls:": sound.replace(
            'class="scroll"', 'class="scroll" style="max-height: 9rem; overflow: auto"'
        ),
        "faint:": sound.replace("that is sound", "<span style='color: #aaa'>pale</span>"),
        "console:": drawn("console.error('x')"),
        "names:": sound.replace('<div class="plot"', '<h5>deep</h5><div class="plot"'),
        "tables:": sound.replace('<th scope="col"', "<th"),
        "no name: image": sound.replace("</main>", "<svg role='img'><rect/></svg></main>"),
        "overlaps:": drawn(f"{last}; t[1].setAttribute('transform', t[0].getAttribute('transform'));"),
        "clipped:": drawn(f"{last}; t[0].setAttribute('x', 1000);"),
        "small:": drawn(f"{last}; t[0].style.fontSize = '5px';"),
        "empty plot:": sound.replace('"scatter"', '"bar"')
        .replace('"x": [1, 2]', '"x": []')
        .replace('"y": [1, 2]', '"y": []'),
        "empty page:": render_page("A page", [], []),
    }
    for kind, text in planted.items():
        assert text != sound
        assert kind in seen(text), kind


def test_contrast() -> None:
    """The ratios that WCAG names for black, white and the darkest grey that still passes."""
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)
    assert contrast((9, 9, 9), (9, 9, 9)) == 1
