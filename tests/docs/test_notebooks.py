"""Notebooks are stored as written, and objects show themselves once in them; `.ci/notebooks` runs them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.report.text.rendering import make_console

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_eight() -> None:
    """One for every thing that a new user wants to do."""
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02}" for number in range(1, 9)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_short_and_hold_no_outputs(path: Path) -> None:
    """About ten cells, which parse, use names that exist, and carry nothing of a run."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert 8 <= len(cells) <= 12
    assert cells[0]["cell_type"] == "markdown"
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            tree = ast.parse("".join(cell["source"]))
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "tw"
                ):
                    assert hasattr(tw, node.attr)


def test_what_is_shown_in_a_notebook_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and HTML are made without a display of their own."""
    shown: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *parts: shown.append(parts))
    assert not make_console().is_jupyter
    bundle = tw.machine("nvdla-256")._repr_mimebundle_()
    assert {*bundle} == {"text/plain", "text/html"}
    assert "CBUF" in bundle["text/plain"]
    assert not shown
