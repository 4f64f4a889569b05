"""Tiled machines: a grid of engines with buffers, links and DRAM ports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from tilewright.api.display import Displayed
from tilewright.foundation.description import names_a_file
from tilewright.foundation.errors import did_you_mean
from tilewright.foundation.yaml_file import read_yaml
from tilewright.hardware.scheduling.herald.system_file import list_systems
from tilewright.hardware.scheduling.tiled.load import changed_machine, list_tiled_machines, load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine as Grid
from tilewright.hardware.scheduling.tiled.machine import machine_to_dict


class TiledMachine(Displayed):
    """A grid of equal engines.  Made by `tiled_machine`.

    Parameters
    ----------
    hardware : the machine in bytes, cycles and pJ
    """

    def __init__(self, hardware: Grid) -> None:
        self.hardware = hardware

    @property
    def name(self) -> str:
        """The preset's name or the file's stem, with changes in brackets."""
        return self.hardware.name

    @property
    def engines(self) -> int:
        """Engines of the grid."""
        return self.hardware.engines

    def with_(self, changes: Mapping[str, object] | None = None, /, **parameters: object) -> TiledMachine:
        """Another machine, with some of the parameters that may stand in brackets behind a name.

        ::

            machine.with_(link=8, engines="4x4")
            machine.with_({"dram-port": 32})

        Raises
        ------
        InputError : for an unknown parameter, or a value that it cannot have
        """
        given = {**(changes or {}), **{key.replace("_", "-"): value for key, value in parameters.items()}}
        return TiledMachine(changed_machine(self.hardware, {key: str(value) for key, value in given.items()}))

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain data."""
        return machine_to_dict(self.hardware)

    def rows(self) -> list[dict[str, Any]]:
        """One row per engine: its position, and whether its router reaches DRAM."""
        ports = {*self.hardware.dram_ports}
        places = [self.hardware.position(engine) for engine in range(self.engines)]
        return [
            {"engine": engine, "x": x, "y": y, "dram_port": (x, y) in ports}
            for engine, (x, y) in enumerate(places)
        ]

    def views(self) -> Sequence[RenderableType]:
        """Grid, network, DRAM and engine."""
        from tilewright.report.text.scheduling.tiled.machine import machine_views

        return machine_views(self.hardware)

    def __repr__(self) -> str:
        return f"TiledMachine({self.name!r}, {self.hardware.width} x {self.hardware.height} engines)"


def tiled_machine(name: str | os.PathLike[str]) -> TiledMachine:
    """A tiled machine by its preset's name or from a YAML file, with parameters in brackets where some are to
    change: ``atomic-8x8[link=16]``.

    Raises
    ------
    InputError : for an unknown name or parameter, or a file that describes no tiled machine, with the field
    """
    return TiledMachine(load_tiled_machine(name))


def tiled_machines() -> list[str]:
    """Names of the tiled machines that come with the package."""
    return list_tiled_machines()


def is_tiled(system: str | os.PathLike[str]) -> bool:
    """Whether a system's text means a tiled machine: a preset's name or nearly so, brackets, a file with a
    grid.

    Raises
    ------
    InputError : for a file that cannot be read as YAML
    """
    base, bracket, _ = os.fspath(system).strip().partition("[")
    if names_a_file(base) and os.path.isfile(base):
        data = read_yaml(Path(base))
        return bool(bracket) or (isinstance(data, dict) and "grid" in data)
    if bracket or base in list_tiled_machines():
        return True
    nearest = did_you_mean(base, [*list_systems(), *list_tiled_machines()])
    return base not in list_systems() and any(f"{name!r}" in nearest for name in list_tiled_machines())
