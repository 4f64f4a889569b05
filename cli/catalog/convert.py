"""``tilewright convert``: machines, layers, constraints and mappings of other programs, both ways."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import completion
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import tell, write
from tilewright.foundation.errors import InputError

if TYPE_CHECKING:
    from tilewright.report.exchange.bundle import Settings
    from tilewright.report.exchange.convert import Conversion

_MISSING_DATA = "Data missing in the files"


def convert_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Files of one program that belong together, or a machine, layer or mapping.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PROGRAM",
            help="tilewright, timeloop or zigzag.",
            autocompletion=completion.one_of("tilewright", "timeloop", "zigzag"),
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE|FOLDER", help="A file such as m.yaml, or a folder (made if absent)."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE.json", help="Write the losses as JSON.")
    ] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Write even if losses change an answer.")] = False,
    arch: Annotated[
        str | None,
        typer.Option(
            "--arch",
            "-a",
            help="Machine, if the files have none.",
            rich_help_panel=_MISSING_DATA,
            autocompletion=completion.machines,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            "--layer", metavar="LAYER", help="Layer, if the files have none.", rich_help_panel=_MISSING_DATA
        ),
    ] = None,
    energy: Annotated[
        list[str] | None,
        typer.Option(
            "--energy",
            metavar="LEVEL=PJ[,PJ]",
            help="pJ per element read (and written) at a level, MAC=PJ per multiply-accumulate; repeatable.",
            rich_help_panel=_MISSING_DATA,
        ),
    ] = None,
    element_bits: Annotated[
        int | None,
        typer.Option("--element-bits", min=1, help="Bits of every element.", rich_help_panel=_MISSING_DATA),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option("--clock", metavar="MHZ", help="The machine's clock.", rich_help_panel=_MISSING_DATA),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors on stderr.")] = False,
) -> int:
    """Convert files of other programs and list the losses (docs/convert.md)."""
    from tilewright.api.saving import FileListener
    from tilewright.cli.searching import failed
    from tilewright.foundation.disk import check_writable
    from tilewright.report.exchange.convert import convert

    if report is not None:
        check_writable(report)
    settings = _settings(energy or [], element_bits, clock)
    conversion = convert(files, to, arch=arch, layer=layer, settings=settings)
    refused = bool(conversion.grave) and not lossy
    listing = FileListener()
    if report is not None:
        listing.write(report, json.dumps(conversion.to_dict() | {"written": not refused}, indent=2) + "\n")
    lost = failed([listing])
    if refused:
        for loss in conversion.losses:
            tell(f"tilewright: {loss.text}")
        count = len(conversion.grave)
        losses = "1 loss changes" if count == 1 else f"{count} losses change"
        raise InputError(files[0], None, f"{losses} an answer; --lossy accepts this")
    _write(conversion, out, quiet=quiet)
    if not quiet:
        for loss in conversion.losses:
            tell(f"tilewright: {loss.text}")
    return Exit.ERROR if lost else Exit.OK


def _write(conversion: Conversion, out: Path | None, *, quiet: bool) -> None:
    """To standard output, one file, or a folder."""
    from tilewright.foundation.disk import check_writable, write_file

    if out is None:
        for index, output in enumerate(conversion.outputs):
            parted = "---\n" if index else ""
            head = f"{parted}# {output.name}\n" if len(conversion.outputs) > 1 else ""
            write(head + output.text)
        return
    if out.suffix and not os.path.isdir(out):
        if len(conversion.outputs) == 1:
            check_writable(out)
            write_file(out, conversion.outputs[0].text)
            return
        names = ", ".join(output.name for output in conversion.outputs)
        raise InputError(str(out), None, f"expected a folder for several files: {names}")
    try:
        out.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(str(out), None, f"cannot be made: {error.strerror or error}") from None
    places = [out / output.name.replace("/", "-") for output in conversion.outputs]
    for place in places:
        check_writable(place)
    for place, output in zip(places, conversion.outputs, strict=True):
        write_file(place, output.text)
        if not quiet:
            tell(f"tilewright: {place}")


def _settings(energies: list[str], element_bits: int | None, clock: str | None) -> Settings:
    from tilewright.foundation.units import parse_energy, parse_positive
    from tilewright.report.exchange.bundle import Settings

    rates: dict[str, tuple[Fraction, Fraction]] = {}
    for text in energies:
        name, equals, numbers = text.partition("=")
        parts = numbers.split(",")
        if not equals or not name or len(parts) > 2 or name in rates:
            raise InputError(
                "--energy", text, "expected a level, once, with its pJ, such as GLB=6 or GLB=6,7"
            )
        try:
            values = [parse_energy(part) for part in parts]
        except ValueError as error:
            raise InputError("--energy", text, str(error)) from None
        rates[name] = (values[0], values[-1])
    try:
        mhz = None if clock is None else parse_positive(clock.removesuffix("MHz").strip())
    except ValueError as error:
        raise InputError("--clock", None, str(error)) from None
    return Settings(rates, element_bits, mhz)
