"""The manual as a site: its contents, its generated parts, its examples, and that it builds."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from shipped import follows_schema

import tilewright

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that writes the generated parts."""
    monkeypatch.syspath_prepend(DOCS / "tools")
    return importlib.import_module("tables")


def test_every_page_is_in_the_contents() -> None:
    """The page of links names every page once."""
    linked = re.findall(r"^- \[[^\]]+\]\(([\w/-]+\.md)\): \S", (DOCS / "index.md").read_text(), re.MULTILINE)
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    assert len(linked) == len(set(linked))
    assert set(linked) == pages


def test_generated_parts_are_up_to_date(tables: ModuleType) -> None:
    """The committed tables are those that the code and its schemas give: `python docs/tools/tables.py`."""
    stale = [page.name for page in tables.pages() if tables.renewed(page.read_text()) != page.read_text()]
    assert not stale


def test_notes_of_fields_fit_the_code(tables: ModuleType) -> None:
    """Every example of a field is taken by its model, and no note speaks of what is gone."""
    assert not importlib.import_module("file_fields").check_examples()
    assert not importlib.import_module("document_fields").unused()


def test_every_file_model_and_document_has_a_table(tables: ModuleType) -> None:
    """No model of a file, no kind of document and no name of the interface is left out of the reference."""
    text = "\n".join(page.read_text() for page in tables.pages())
    parts = {(kind, name) for _, kind, name, _ in tables.PART.findall(text)}
    files, documents = importlib.import_module("file_fields"), importlib.import_module("document_fields")
    assert {name for kind, name in parts if kind == "file"} == set(files.NOTES)
    assert {name for kind, name in parts if kind == "document"} == set(documents.KINDS)
    shown = {name for kind, names in parts if kind == "names" for name in re.split(r",\s*", names)}
    assert shown == set(tilewright.__all__) - {"__version__"}


@pytest.mark.parametrize("kind", ["result", "schedule", "codesign", "plan", "compare", "explore", "sweep"])
def test_example_documents_fit_their_schemas(kind: str) -> None:
    """The documents that the reference takes its examples from are such documents."""
    data = json.loads((DOCS / "reference" / "documents" / f"{kind}.json").read_text())
    follows_schema(data, f"{kind}-1.schema.json")


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Every link, heading and docstring of the site is in order."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    pytest.importorskip("myst_parser", reason="the extra docs is not installed")
    call = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "python.html").stat().st_size > 50_000
