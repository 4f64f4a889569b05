"""The tables of figures in the manual: their list, their marks, one state of all, and what writes them."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from studies import figures

from tilewright.foundation.yaml_file import read_yaml

LIST = read_yaml(figures.LIST)
CAPTION = re.compile(r"^(?:Short run of version|Version) (\S+), (\d{4}-\d\d-\d\d), ([\d,]+) s", re.MULTILINE)
STUDY = """
import pathlib, sys
runs = pathlib.Path("runs")
runs.write_text((runs.read_text() if runs.exists() else "") + sys.argv[1])
sys.exit("no table today") if pathlib.Path("fails" + sys.argv[1]).exists() else None
print("told beside\\n\\n| a | b |\\n|---|---|\\n| 1 | " + sys.argv[1] + " |\\n\\n| c |\\n|---|\\n| 2 |")
"""


def marks(page: str) -> list[str]:
    """The names between the marks of a page."""
    text = (figures.DOCS / f"{page}.md").read_text(encoding="utf-8")
    return [name for _, name, _ in figures.PART.findall(text)]


@pytest.mark.parametrize("page", LIST)
def test_every_figure_has_its_place(page: str) -> None:
    """A page has the marks of its figures, each once and no others; pictures alone need none."""
    tables = [name for name, entry in LIST[page].items() if "files" not in entry or name in marks(page)]
    assert sorted(marks(page)) == sorted(tables)


def test_no_other_page_has_marks() -> None:
    """Every page with marks is in the list."""
    pages = [path.stem for path in figures.DOCS.glob("*.md") if figures.PART.search(path.read_text("utf-8"))]
    assert set(pages) <= set(LIST)


def test_all_figures_are_of_one_version() -> None:
    """Every mark holds a table; all captions name the same version, and each its own day."""
    versions = set()
    for page in LIST:
        text = (figures.DOCS / f"{page}.md").read_text(encoding="utf-8")
        for part in figures.PART.finditer(text):
            caption = CAPTION.search(part[0])
            assert caption is not None, f"{page}: {part[2]} has not been measured"
            assert figures.printed_tables(part[0]), f"{page}: {part[2]} has no table"
            versions.add(caption[1])
    assert len(versions) == 1


@pytest.mark.parametrize("size", figures.SIZES)
@pytest.mark.parametrize("page", LIST)
def test_every_command_is_a_program(page: str, size: str) -> None:
    """Commands are complete in every size, and name a verb of the command line or a module that exists."""
    for figure in figures.figures(page, size):
        for command in figure.commands:
            words = shlex.split(command)
            assert "{" not in command
            if words[0] == "python":
                assert words[1] == "-m"
                assert importlib.util.find_spec(words[2]) is not None, command
            else:
                assert words[0] == "tilewright"


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A manual of one page with three figures in two pages of marks, and a study of its own."""
    docs = tmp_path / "docs"
    (docs / "figures").mkdir(parents=True)
    (docs / "page.md").write_text(
        "# Page\n\n<!-- figures: first -->\n\n<!-- end -->\n\nText.\n\n"
        "<!-- figures: other -->\nold\n<!-- end -->\n"
    )
    (tmp_path / "study.py").write_text(STUDY)
    listed = tmp_path / "list.yaml"
    run = f"python {tmp_path}/study.py {{letter}}"
    listed.write_text(
        f"page:\n  first: {{run: '{run}', short: {{letter: a}}, full: {{letter: A}}, tables: [0]}}\n"
        f"  other: {{run: ['{run}', 'python {tmp_path}/study.py c'], short: {{letter: b}}, "
        "files: {runs: drawn}}\n"
    )
    monkeypatch.setattr(figures, "LIST", listed)
    monkeypatch.setattr(figures, "DOCS", docs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_measured_is_kept_and_written(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that failed goes on with the command that it was at; pages get tables, pictures and captions."""
    page, store = small / "docs" / "page.md", small / "figures" / "short"
    store.mkdir(parents=True)
    (store / "failsc").touch()
    assert figures.main(["page"]) == 1
    assert "no table today" in capsys.readouterr().err
    assert (store / "runs").read_text() == "abc"
    (store / "failsc").unlink()
    assert figures.main(["all", "--check"]) == 1
    assert capsys.readouterr().out == "page: first: differs\npage: other: not measured\n"
    assert figures.main(["all", "--write"]) == 0
    assert (store / "runs").read_text() == "abcc"
    text = page.read_text()
    first, other = (part[0] for part in figures.PART.finditer(text))
    assert first.count("|---|") == 1
    assert "| 1 | a |" in first
    assert [line for line in other.splitlines() if line.startswith("| 1")] == ["| 1 | b |", "| 1 | c |"]
    assert "old" not in text
    assert len(CAPTION.findall(text)) == 2
    assert (small / "docs" / "figures" / "drawn").read_text() == "abcc"
    assert figures.main(["page", "--check"]) == 0
    page.write_text(text.replace("| 1 | a |", "| 1 | 9 |"))
    assert figures.main(["page", "--check"]) == 1
    assert figures.main(["page", "--check", "--only", "other"]) == 0


def test_sizes_and_versions_are_apart(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full run has a folder and values of its own, and another version measures anew."""
    assert figures.main(["page", "--only", "first"]) == 0
    assert figures.main(["page", "--only", "first", "--size", "full"]) == 0
    assert (small / "figures" / "full" / "runs").read_text() == "A"
    monkeypatch.setattr(figures, "__version__", "99")
    assert figures.main(["page", "--only", "first"]) == 0
    assert (small / "figures" / "short" / "runs").read_text() == "aa"


def test_a_command_that_needs_a_peer_waits_for_one(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an interpreter for it the figure is left out, with a line that says so."""
    figures.LIST.write_text("page:\n  first: {run: PEER/bin/python study.py a}\n")
    assert figures.main(["page"]) == 1
    assert "needs --peer" in capsys.readouterr().err
