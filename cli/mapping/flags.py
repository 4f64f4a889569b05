"""Flags that `map` and `explore` share: phases of a language model."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Phases"

Phases = Annotated[
    str | None,
    typer.Option(
        "--phases",
        metavar="PHASE:RUNS",
        help="Of a language model, how often it reads a prompt and adds a token: prefill:1,decode:200.  "
        "The cache grows by a token with every step.",
        rich_help_panel=_PANEL,
    ),
]
Lengths = Annotated[
    int | None,
    typer.Option(
        "--lengths",
        metavar="N",
        help="So many of the steps are searched, 5 by default; the others are bounded by those.",
        rich_help_panel=_PANEL,
    ),
]
