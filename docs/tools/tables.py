"""``python docs/tools/tables.py`` writes the generated parts of the pages anew.

A part stands between ``<!-- generated: WHAT -->`` and ``<!-- end -->``; WHAT is ``file NAME`` (a model of a
YAML file), ``document KIND`` (all records of a JSON document), ``operators`` (of ONNX) or
``names NAME, NAME …`` (of the Python interface).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import document_fields
import file_fields

import tilewright
from tilewright.workloads.onnx.importer import operator_support

DOCS = Path(__file__).parents[1]
PART = re.compile(r"(<!-- generated: (\w+) ?([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Pages with generated parts."""
    return [page for page in sorted(DOCS.rglob("*.md")) if PART.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """A page with its generated parts as they should be."""

    def part(found: re.Match[str]) -> str:
        lines = "\n".join(_lines(found[2], " ".join(found[3].split())))
        return f"{found[1]}\n{lines}\n\n{found[4]}"

    return PART.sub(part, text)


def _lines(what: str, name: str) -> Iterator[str]:
    match what:
        case "file":
            yield from file_fields.table(name)
        case "document":
            yield from document_fields.tables(name)
        case "operators":
            yield from operators()
        case "names":
            yield from names(name)
        case other:
            raise LookupError(f"no part is called {other!r}")


def operators() -> Iterator[str]:
    """Every ONNX operation that can be imported, and what becomes of it."""
    yield "| operation | becomes |"
    yield "|---|---|"
    for name, about in operator_support():
        yield f"| `{name}` | {about} |"


def names(wanted: str) -> Iterator[str]:
    """Names of the interface with the first line of their docstrings."""
    yield "| name | what it is |"
    yield "|---|---|"
    for name in re.split(r",\s*", wanted):
        first = (inspect.getdoc(getattr(tilewright, name)) or "").partition("\n\n")[0]
        about = " ".join(first.split()).replace("``", "`").replace("|", "&#124;")
        yield f"| `{name}` | {about} |"


if __name__ == "__main__":
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if renewed(text) != text:
            page.write_text(renewed(text), encoding="utf-8")
            print(page.relative_to(DOCS))
