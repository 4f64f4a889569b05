"""Flags that ``map`` and ``explore`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AllOperators = Annotated[
    bool,
    typer.Option("--all-operators", help="Pooling and element-wise layers too.", rich_help_panel="Problem"),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Self-contained HTML report.", rich_help_panel="Output"),
]
