"""Figures of the five papers: registry, store, comparison with printed numbers, page and command line."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from studies import __main__ as command
from studies.answers import COLUMNS, content_hash
from studies.papers import page
from studies.papers.figure import SIZES, Number, PaperFigure, Plain, Span, Statement, Verdict
from studies.papers.registry import PAPERS, figure, label, names
from studies.papers.study import (
    APPLICATION,
    NotMeasuredError,
    OutOfTimeError,
    PaperCell,
    Study,
    cells_of_papers,
    number,
    read_table,
)

from tilewright.foundation.store import Layout, SealedStore, Table

FIGURES = [(paper, name) for paper in PAPERS for name in names(paper)]
MEASURED = [(paper, name) for paper, name in FIGURES if isinstance(figure(paper, name), PaperFigure)]
TEXT = page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("paper", "name"), FIGURES)
def test_every_figure_has_a_row(paper: str, name: str) -> None:
    """The page has one row per figure and table, with the command of those that are measured."""
    part = TEXT[TEXT.index(f"<!-- paper: {paper} -->") :]
    part = part[: part.index("<!-- end of paper -->")]
    rows = [line for line in part.splitlines() if re.match(rf"\| \[?{label(name)}[\] ]", line)]
    assert len(rows) == 1
    entry = figure(paper, name)
    assert isinstance(entry, Plain) or f"`python -m studies {paper} {name}`" in rows[0]


@pytest.mark.parametrize(("paper", "name"), MEASURED)
def test_every_figure_has_all_sizes(paper: str, name: str) -> None:
    """Smoke, short and full runs have values, and the same claims stand beside each."""
    entry = figure(paper, name)
    assert isinstance(entry, PaperFigure)
    assert set(entry.sizes) == set(SIZES)
    assert entry.claim.endswith(".")


def test_pictures_are_those_of_the_page() -> None:
    """Every picture that the page shows is there, and no other one."""
    shown = set(re.findall(r"\(figures/papers/([\w-]+\.png)\)", TEXT))
    assert shown == {path.name for path in page.PICTURES.glob("*.png")}


def test_what_is_not_measured_stays_on_the_page(tmp_path: Path) -> None:
    """Writing nothing changes nothing; writing one figure changes its section and the counts alone."""
    assert page.rewritten(TEXT, {}) == TEXT
    entry = figure("dmazerunner", "fig6")
    assert isinstance(entry, PaperFigure)
    verdict = Verdict((Number("a", 1, 2),))
    shown = page.Shown("dmazerunner", "fig6", Study(tmp_path, "short", {}), {"rows": []}, verdict)
    changed = page.rewritten(TEXT, {"dmazerunner": {"fig6": shown}})
    before, after = page.sections(TEXT, "dmazerunner"), page.sections(changed, "dmazerunner")
    assert after["fig6"].state == "not reproduced (short run)"
    assert {name for name in after if after[name] != before[name]} == {"fig6"}
    assert page.sections(changed, "set") == page.sections(TEXT, "set")


def test_links_of_rows_lead_to_headings() -> None:
    """A row links to the heading of its figure."""
    headings = {
        re.sub(r"[^\w -]", "", line[4:].lower()).replace(" ", "-")
        for line in TEXT.splitlines()
        if line[:4] == "### "
    }
    links = set(re.findall(r"\]\(#((?:figure|table)-[^)]+)\)", TEXT))
    assert links == headings


def test_printed_numbers_hold_within_ten_percent() -> None:
    """A number is met within 10 % or where both are written alike; not a number never is."""
    assert Number("a", 100, 91).holds
    assert not Number("a", 100, 89).holds
    assert Number("a", 0.002, 0.0017, "{:.3f}").holds
    assert not Number("a", 1, float("nan")).holds
    assert not Number("a", float("nan"), float("nan")).holds
    assert Span("a", 1.0, 0.95, "{:.2f}", 2.0, 2.1).holds
    assert not Span("a", 1.0, 0.8, "{:.2f}", 2.0, 1.5).holds


def test_verdicts_follow_from_what_holds() -> None:
    """The word of a verdict is that of its comparisons; an explanation is no reproduction."""
    met, missed = Number("a", 1, 1), Number("b", 1, 2)
    assert Verdict((met, Statement("c", "", True))).word == "reproduced"
    assert Verdict((met, missed)).word == "reproduced in part"
    assert Verdict((missed,)).word == "not reproduced"
    assert Verdict((missed,), explained=["b"]).word == "differs, explained"
    assert Verdict((missed, Number("d", 1, 3)), explained=["b"]).word == "not reproduced"
    assert Verdict((met,), explained=["a"]).word == "reproduced"
    assert Verdict().word == "nothing printed to compare"
    assert Verdict((met, missed)).first.startswith("1 of 2 ")


def _study(folder: Path, **more: object) -> Study:
    return replace(Study(folder, "smoke", {}), **more)  # type: ignore[arg-type]


def test_a_cell_is_computed_once(tmp_path: Path) -> None:
    """What is known is read; other values are another cell; nothing is computed where nothing may be."""
    calls = []

    def compute(**values: int) -> dict[str, int]:
        calls.append(values)
        return {"twice": 2 * values["one"]}

    study = _study(tmp_path)
    assert [study.cell("name", compute, one=1)["twice"] for _ in range(2)] == [2, 2]
    assert _study(tmp_path).cell("name", compute, one=2) == {"twice": 4}
    assert calls == [{"one": 1}, {"one": 2}]
    assert _study(tmp_path, draw_only=True).cell("name", compute, one=2) == {"twice": 4}
    with pytest.raises(NotMeasuredError):
        _study(tmp_path, draw_only=True).cell("name", compute, one=3)
    with pytest.raises(OutOfTimeError):
        _study(tmp_path, limit=-1.0).cell("name", compute, one=3)


def test_captions_tell_what_cells_took_when_they_were_computed(tmp_path: Path) -> None:
    """What comes from the store counts the seconds and the day of its computation."""
    first, again = _study(tmp_path), _study(tmp_path, draw_only=True)
    summed = first.cell("sum", lambda most: sum(range(most)), most=300_000)
    assert again.cell("sum", sum, most=300_000) == summed
    assert again.seconds == first.seconds > 0
    assert again.dates == first.dates
    assert len(first.dates) == 1


def test_a_store_of_an_earlier_layout_is_read(tmp_path: Path) -> None:
    """Cells kept before seconds were are still answers, of 0 s."""
    asked = PaperCell("one", {"a": 1})
    row = {"key": content_hash(asked), "cell": "{}", "answer": json.dumps({"status": "found", "value": 7})}
    former = Table("cell", COLUMNS[:3], dict)
    with closing(SealedStore(tmp_path / "old", Layout(APPLICATION, 0, (former,), "cells"))) as old:
        old.add(former, row)
    with closing(cells_of_papers(tmp_path / "old")) as store:
        kept = store.kept(asked)
    assert kept is not None
    assert (kept.answer.value, kept.seconds, kept.date) == (7, 0.0, "")


def test_tables_are_read_back() -> None:
    """Rows come by the heads of their columns, and cells give their first number."""
    rows = read_table("| a | b [%] |\n|---|---:|\n| x | 1,234.5 (6) |\n| y | - |")
    assert [row["a"] for row in rows] == ["x", "y"]
    assert number(rows[0]["b [%]"]) == 1234.5
    assert number(rows[1]["b [%]"]) != number(rows[1]["b [%]"])


def test_the_manuals_tables_are_taken_where_nothing_is_computed(tmp_path: Path) -> None:
    """With nothing in the store, a short figure that another page has is drawn from that page."""
    assert command.main(["set", "fig8", "--draw-only", "--store", str(tmp_path)]) == 0


def test_one_figure_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A smoke run measures, draws and judges; a second one reads what is known."""
    call = ["dmazerunner", "fig6", "--size", "smoke", "--store", str(tmp_path)]
    assert command.main(call) == 0
    first = capsys.readouterr()
    assert "| of unique reuse | 5 | 5 | holds |" in first.out
    assert "orderings" in first.err
    assert (tmp_path / "smoke" / "dmazerunner-fig6.png").stat().st_size > 10_000
    assert command.main([*call, "--draw-only"]) == 0
    second = capsys.readouterr()
    assert (second.out, second.err) == (first.out, "")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["eyeriss", "fig1"], "PAPER: 'eyeriss', expected one of dmazerunner"),
        (["herald", "fig99"], "FIGURE: herald has no 'fig99', expected one of fig1"),
        (["herald", "fig11", "--class", "huge"], "--class: 'huge', expected edge, mobile, cloud"),
        (["herald", "fig11", "--class"], "--class: '', expected edge, mobile, cloud"),
        (["dmazerunner", "fig6", "--class", "edge"], "--class: no option of this figure, expected none"),
    ],
)
def test_bad_calls_are_one_line(
    call: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name or option that is not there is told in one line, with what was expected."""
    assert command.main([*call, "--store", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_all_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has a line for every figure and table of every paper."""
    assert command.main(["--list"]) == 0
    listed = [tuple(line.split()[:2]) for line in capsys.readouterr().out.splitlines()]
    assert listed == FIGURES
