"""The site: ``python -m sphinx -W docs FOLDER`` (extra ``docs``) builds these pages, which read without it.

Pages are plain Markdown.  What a generator needs beyond that is made here: the contents from the lists of
links in ``index.md``, and the docstrings in place of the marks ``<!-- docstrings: NAME, NAME -->``.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import tilewright

project = "Tilewright"
version = release = tilewright.__version__
author = copyright = "the authors of Tilewright"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["tools", "_build"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nitpicky = False
default_role = "code"
suppress_warnings = ["ref.python"]  # a word of a docstring that names attributes of several classes

html_theme = "furo"
html_title = f"Tilewright {version}"
html_static_path = ["tools/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)
_ENTRY = re.compile(r"([\w*, ]+?) : (.+)")
_OUTSIDE = re.compile(r"\]\((?=(?:\.\./)+[A-Z]+\.md\b)")
"""Links to pages beside this folder, which the site offers as files."""
_DOCSTRINGS = re.compile(r"^<!-- docstrings: (.+?) -->$", re.MULTILINE | re.DOTALL)


def contents(text: str) -> str:
    """Hidden tables of contents, one per section of the page of links."""
    parts = _SECTION.split(text)
    trees = []
    for title, section in zip(parts[1::2], parts[2::2], strict=True):
        pages = _PAGE.findall(section)
        if pages:
            trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"]))
    return "\n\n".join([text, *trees, ""])


def docstrings(found: re.Match[str]) -> str:
    """Directives for the names of the interface that a mark lists."""
    lines = ["```{eval-rst}"]
    for name in re.split(r",\s*", found[1].strip()):
        thing = getattr(tilewright, name)
        kind = "autofunction" if inspect.isfunction(thing) else "autoclass"
        if inspect.isclass(thing) and issubclass(thing, Exception):
            kind = "autoexception"
        lines += [f".. {kind}:: tilewright.{name}"]
        lines += ["   :members:", ""] if kind == "autoclass" else [""]
    return "\n".join([*lines, "```"])


def _read(app: Any, page: str, source: list[str]) -> None:
    """Complete a page that is plain Markdown in the repository."""
    if page == "index":
        source[0] = contents(source[0])
    source[0] = _OUTSIDE.sub("](path:", _DOCSTRINGS.sub(docstrings, source[0]))


def _untyped(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    """Entries are ``name : meaning``, since signatures have the types; numpydoc would read a type there."""
    section = ""
    for place, line in enumerate(lines):
        if place + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[place + 1]):
            section = line
        entry = _ENTRY.match(line) if section in ("Parameters", "Raises", "Attributes") else None
        if entry:
            lines[place] = f"{entry[1]}\n    {entry[2]}"
    lines[:] = "\n".join(lines).split("\n")


def setup(app: Any) -> dict[str, bool]:
    """Called by the generator."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _untyped, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
