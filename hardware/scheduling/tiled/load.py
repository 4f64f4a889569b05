"""Tiled machines by name or file, with parameters in brackets: ``atomic-8x8[link=16,buffer=256]``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from tilewright.foundation.description import names_a_file, read_description
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.named_files import NamedFiles
from tilewright.foundation.units import LIMIT
from tilewright.hardware.scheduling.tiled.machine import DATAFLOWS, TOPOLOGIES, TiledMachine
from tilewright.hardware.scheduling.tiled.machine_file import (
    MAX_SIDE,
    PLACES,
    parse_tiled_machine,
    port_positions,
)

_TEXT = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<options>[^\[\]]*)\])?")
_GRID = re.compile(r"([1-9][0-9]{0,2})x([1-9][0-9]{0,2})")


PRESETS = NamedFiles(Path(__file__).parent / "presets", "tiled_machines")


def list_tiled_machines() -> list[str]:
    """Names of the tiled machines that come with the package or with installed ones, sorted."""
    return PRESETS.names()


def load_tiled_machine(text: str | os.PathLike[str]) -> TiledMachine:
    """The machine of a preset's name or a YAML file, with parameters in brackets where some are to change.

    Parameters (rates in bytes per cycle, sizes in KiB): see `PARAMETERS`.

    Raises
    ------
    InputError : for an unknown name, an unreadable file, a file that describes no tiled machine, an unknown
        parameter, or a value that it cannot have
    """
    whole = os.fspath(text)
    match = _TEXT.fullmatch(whole.strip())
    if match is None:
        raise InputError(whole, None, "expected NAME or NAME[parameter=value,...]")
    base, inside = match["name"].strip(), match["options"]
    machine = _from_file(Path(base)) if names_a_file(base) or not isinstance(text, str) else _preset(base)
    if not inside or not inside.strip():
        return machine
    given: dict[str, str] = {}
    for part in inside.split(","):
        key, equals, value = (side.strip() for side in part.partition("="))
        if not (key and equals and value):
            raise InputError(whole, None, f"cannot read {part.strip()!r}, expected parameter=value")
        if key in given:
            raise InputError(whole, key, "is given twice")
        given[key] = value
    return changed_machine(machine, given, whole)


def changed_machine(
    machine: TiledMachine, given: Mapping[str, str], where: str | None = None
) -> TiledMachine:
    """A machine with other parameters, which its name shows in brackets.

    Parameters
    ----------
    where : what errors call it; by default the machine's name

    Raises
    ------
    InputError : for an unknown parameter, or a value that it cannot have
    """
    place = where or machine.name
    for key in given:
        if key not in PARAMETERS:
            raise InputError(place, None, f"parameter: {unknown_name(key, PARAMETERS)}")
        if key in OF_TILES and machine.engine.own is not None:
            file = machine.engine.own.engine.name
            raise InputError(place, key, f"expected a change in {file}, the machine file of the tile")
    for key in sorted(given, key=list(PARAMETERS).index):
        try:
            machine = PARAMETERS[key][1](machine, given[key])
        except ValueError as error:
            raise InputError(place, key, str(error)) from None
    if not given:
        return machine
    reported = ",".join(f"{key}={value}" for key, value in given.items())
    known = machine.name.removesuffix("]") + "," if machine.name.endswith("]") else f"{machine.name}["
    return replace(machine, name=f"{known}{reported}]")


def _from_file(path: Path) -> TiledMachine:
    return parse_tiled_machine(read_description(path), str(path), path.stem, path.parent)


@cache
def _preset(name: str) -> TiledMachine:
    path = PRESETS.path(name)
    return parse_tiled_machine(read_description(path), path.name, name, path.parent)


Change = Callable[[TiledMachine, str], TiledMachine]


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 / LIMIT <= value <= LIMIT:
        raise ValueError(f"expected a number above 0 and at most {LIMIT:,}, got {text!r}")
    return value


def _word(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(unknown_name(text, known))
    return text


def _grid(text: str) -> tuple[int, int]:
    match = _GRID.fullmatch(text)
    if match is None or max(int(match[1]), int(match[2])) > MAX_SIDE:
        raise ValueError(f"expected WIDTHxHEIGHT of at most {MAX_SIDE} each, such as 4x4, got {text!r}")
    return int(match[1]), int(match[2])


def _set_engines(machine: TiledMachine, text: str) -> TiledMachine:
    """Another grid; DRAM ports keep their kind (both sides of every row, or what fits of a list)."""
    width, height = _grid(text)
    for kind in PLACES:
        if machine.dram_ports == port_positions(kind, machine.width, machine.height):
            ports = port_positions(kind, width, height)
            break
    else:
        ports = tuple((x, y) for x, y in machine.dram_ports if x < width and y < height)
        if not ports:
            raise ValueError(f"no DRAM port of {machine.name} lies on a grid of {text}")
    return replace(machine, width=width, height=height, dram_ports=ports)


def _set_link(machine: TiledMachine, text: str) -> TiledMachine:
    """Links, and the ports that were as wide as they."""
    rate = _rate(text)
    port = rate if machine.port_rate == machine.link_rate else machine.port_rate
    dram = rate if machine.dram_port_rate == machine.link_rate else machine.dram_port_rate
    return replace(machine, link_rate=rate, port_rate=port, dram_port_rate=dram)


def _set_buffer(machine: TiledMachine, text: str) -> TiledMachine:
    size = _rate(text) * 1024
    if size != int(size) or size > LIMIT:
        raise ValueError(f"expected a whole number of bytes of at most {LIMIT:,}, got {text!r} KiB")
    return replace(machine, engine=replace(machine.engine, buffer_bytes=int(size)))


def _set_array(machine: TiledMachine, text: str) -> TiledMachine:
    match = re.fullmatch(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})", text)
    if match is None:
        raise ValueError(f"expected ROWSxCOLUMNS, such as 16x16, got {text!r}")
    return replace(machine, engine=replace(machine.engine, rows=int(match[1]), columns=int(match[2])))


OF_TILES = ("array", "buffer", "dataflow")
"""Parameters that a tile from a machine file has in its own file."""

#: what may stand in brackets: a few words on it, and what it changes, applied in this order
PARAMETERS: dict[str, tuple[str, Change]] = {
    "engines": ("the grid, such as 4x4", _set_engines),
    "array": ("PEs of an engine, such as 32x32", _set_array),
    "buffer": ("KiB of an engine's buffer", _set_buffer),
    "link": ("bytes per cycle of a link (and of ports that are as wide)", _set_link),
    "port": ("bytes per cycle into and out of an engine", lambda m, t: replace(m, port_rate=_rate(t))),
    "dram": ("bytes per cycle of the DRAM", lambda m, t: replace(m, dram_rate=_rate(t))),
    "dram-port": ("bytes per cycle of a DRAM port", lambda m, t: replace(m, dram_port_rate=_rate(t))),
    "topology": (", ".join(TOPOLOGIES), lambda m, t: replace(m, topology=_word(t, TOPOLOGIES))),
    "dataflow": (
        ", ".join(DATAFLOWS[:2]),
        lambda m, t: replace(m, engine=replace(m.engine, dataflow=_word(t, DATAFLOWS[:2]), lanes=1)),
    ),
    "ports": (
        f"places of the DRAM ports: {', '.join(PLACES)}",
        lambda m, t: replace(m, dram_ports=port_positions(_word(t, PLACES), m.width, m.height)),
    ),
}
