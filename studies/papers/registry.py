"""The papers and their figures: a package per paper, of which every module with a ``FIGURE`` is a figure.

Adding a figure is adding a module: its name is the figure's (``fig9a``, ``table4``).
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from studies.papers.figure import Paper, PaperFigure, Plain
from tilewright.foundation.errors import InputError

PAPERS = ("dmazerunner", "herald", "kapla", "atomic", "set")
NAME = re.compile(r"(fig|table)\d+[a-z]?$")


@cache
def paper(name: str) -> Paper:
    """A paper by name.

    Raises
    ------
    InputError : for a name that no paper has
    """
    if name not in PAPERS:
        raise InputError("PAPER", None, f"{name!r}, expected one of {', '.join(PAPERS)}")
    described: Paper = import_module(f"studies.papers.{name}").PAPER
    return described


def names(paper_name: str) -> list[str]:
    """Figures, then tables of a paper, in the order of their numbers."""
    folder = Path(__file__).with_name(paper_name)
    modules = [path.stem for path in folder.glob("*.py") if NAME.match(path.stem)]
    return sorted({*modules, *paper(paper_name).plain}, key=_place)


def _place(name: str) -> tuple[str, int, str]:
    kind, number, part = re.fullmatch(r"(fig|table)(\d+)(\w*)", name).groups()  # type: ignore[union-attr]
    return kind, int(number), part


@cache
def figure(paper_name: str, name: str) -> PaperFigure | Plain:
    """A figure or table of a paper.

    Raises
    ------
    InputError : for a name that the paper does not have
    """
    plain = paper(paper_name).plain
    if name in plain:
        return plain[name]
    if name not in names(paper_name):
        known = ", ".join(names(paper_name))
        raise InputError("FIGURE", None, f"{paper_name} has no {name!r}, expected one of {known}")
    paper_figure: PaperFigure = import_module(f"studies.papers.{paper_name}.{name}").FIGURE
    return paper_figure


def label(name: str) -> str:
    """``fig9a`` as readers write it."""
    kind, number, part = _place(name)
    return f"{'Figure' if kind == 'fig' else 'Table'} {number}{part}"
