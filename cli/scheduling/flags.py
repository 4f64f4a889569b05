"""Flags that ``schedule`` and ``codesign`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FORMATS = ("table", "json")
OBJECTIVES = ("makespan", "energy", "edp")
"""Of schedules on sub-accelerators; tiled machines have `tiled_objective`."""

Goal = Annotated[
    str, typer.Option("--objective", "-o", help="makespan, energy or edp.", rich_help_panel="Problem")
]
TiledGoal = Annotated[
    str,
    typer.Option(
        "--objective",
        "-o",
        help="makespan, energy, edp, ed2p, or powers such as E^2*D.",
        rich_help_panel="Problem",
    ),
]
AnyGoal = Annotated[
    str,
    typer.Option(
        "--objective",
        "-o",
        help="makespan, energy or edp; on tiled machines also ed2p and powers such as E^2*D.",
        rich_help_panel="Problem",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Choose the mapping of each layer by cycles, energy or edp; by default as the objective.",
        rich_help_panel="Problem",
    ),
]
RequireOptimal = Annotated[
    bool, typer.Option("--require-optimal", help="Exit code 6 unless optimal.", rich_help_panel="Search")
]
Document = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Also write the document to a .json file, whenever it changes.",
        rich_help_panel="Output",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw to a .png or .svg file (extra [b]plots[/b]).", rich_help_panel="Output"),
]
