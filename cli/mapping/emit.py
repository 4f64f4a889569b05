"""``tilewright emit``: mappings as something to run, or as tile sizes for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.exits import Exit


def emit_command(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT|MAPPING", help="Result document or mapping file.")
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help="python, json, gemmini or mlir.",
            autocompletion=completion.one_of("python", "json", "gemmini", "mlir"),
        ),
    ],
    layers: options.OnlyLayers = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A file instead of standard output.")
    ] = None,
) -> int:
    """Write a mapping as NumPy loops, a call of Gemmini's library, MLIR or JSON (docs/emit.md)."""
    from tilewright.api.mapping.emitting import emitted
    from tilewright.cli.terminal.console import write
    from tilewright.foundation.disk import check_writable, write_file

    if out is not None:
        check_writable(out)
    text = emitted(result, to, layers)
    if out is None:
        write(text)
    else:
        write_file(out, text)
    return Exit.OK
