"""The plots by name.  A new one is one module with ``draw(store, rows)``, named here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.extensions import extensions, load_imported
from tilewright.report.plots.style import check_plot_file, save

PLOTS = {
    "cactus": "tilewright.benchmarks.plots.cactus",
    "profile": "tilewright.benchmarks.plots.profile",
    "gaps": "tilewright.benchmarks.plots.gaps",
    "convergence": "tilewright.benchmarks.plots.convergence",
    "energy": "tilewright.benchmarks.plots.energy",
}
"""Module of every kind of plot, in the order of the help."""


def draw_to(path: Path, kind: str, store: Store, rows: Sequence[Row]) -> None:
    """Draw rows of a store into a file.

    Parameters
    ----------
    path : its suffix says in which format
    kind : one of the plots that `list` names
    store : where traces of the runs are
    rows : which runs to draw

    Raises
    ------
    InputError : for an unknown kind, a suffix that is none of a plot, and rows that the kind cannot show
    """
    module = _module(kind)
    check_plot_file(path)
    save(lambda: module.draw(store, rows), path)


def _module(kind: str) -> Any:
    if kind not in PLOTS:
        load_imported()
    if kind in PLOTS:
        return import_module(PLOTS[kind])
    added = extensions("plots")
    if kind in added:
        return added[kind].load()
    raise InputError("--plot", None, unknown_name(kind, [*PLOTS, *added]))
