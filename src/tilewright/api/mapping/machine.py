"""Machines: presets, files, and changed ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.display import Displayed
from tilewright.foundation.description import build_description
from tilewright.foundation.errors import InputError
from tilewright.hardware.changes import changed
from tilewright.hardware.mapping.build import build_engine
from tilewright.hardware.mapping.describe import engine_tree
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.families import is_parametrised as is_parametrised
from tilewright.hardware.mapping.load import (
    engine_hash,
    engine_to_dict,
    list_presets,
    load_description,
    load_engine,
)
from tilewright.hardware.mapping.schema import MachineFile
from tilewright.workloads.mapping.operator import Role


class Machine(Displayed):
    """An accelerator: memory levels and PE arrays, with what they cost.

    Made by `machine`; `with_` gives another one with some fields changed.

    Parameters
    ----------
    engine : the machine in elements, cycles and pJ
    description : the fields of its file; ``None`` where there is none, as for the machine of a document
    where : what errors call the file
    """

    def __init__(self, engine: Engine, description: Mapping[str, Any] | None = None, where: str = "") -> None:
        self.engine = engine
        self._description = description
        self._where = where or engine.name
        self._base = engine.name
        self._changes: dict[str, object] = {}

    @property
    def name(self) -> str:
        """The preset's name, the file's stem, or the name with its changes in brackets."""
        return self.engine.name

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the memory levels, outermost first."""
        return tuple(level.name for level in self.engine.levels)

    @property
    def pes(self) -> int:
        """Processing elements."""
        return self.engine.instances

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that decides what mappings cost."""
        return engine_hash(self.engine)

    @property
    def description(self) -> tuple[Mapping[str, Any], str]:
        """The fields of its file, and what errors call the file.

        Raises
        ------
        InputError : where there is no file, as for the machine of a document
        """
        if self._description is None:
            raise InputError(self.name, None, "comes from a document, which has no machine file to change")
        return self._description, self._where

    def with_(
        self, changes: Mapping[str, object] | None = None, /, *, name: str | None = None, **fields: object
    ) -> Machine:
        """Another machine, with some fields changed.

        ::

            machine.with_({"levels.CBUF.capacity": "64 kB", "levels.CACC.fanout.axes.k.size": 32})
            machine.with_(clock_mhz=500, levels__DRAM__bandwidth="32 GB/s")

        Parameters
        ----------
        changes : by the way to a field, its new value as a machine file writes it; steps are joined by dots,
            and entries of lists go by their names or positions.  ``None`` leaves the field out.
        name : of the new machine; by default the old one with all changes in brackets
        fields : the same with two underscores for each dot

        Raises
        ------
        InputError : naming the file and the field, as for a machine file that is wrong there
        """
        description, _ = self.description
        own_changes = {**(changes or {}), **{key.replace("__", "."): value for key, value in fields.items()}}
        data = changed(description, own_changes, self._where)
        every = {**self._changes, **own_changes}
        inside = ",".join(f"{path}={value}" for path, value in every.items())
        title = name or (f"{self._base}[{inside}]" if every else self._base)
        engine = build_description(data, self._where, MachineFile, lambda file: build_engine(file, title))
        made = Machine(engine, data, self._where)
        if name is None:
            made._base, made._changes = self._base, every
        return made

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain data: sizes in elements, energies in pJ per element as exact text."""
        return engine_to_dict(self.engine)

    def rows(self) -> list[dict[str, Any]]:
        """One row per memory level, outermost first.

        Where some level has energies by role there are columns for every role, too.
        """
        levels = self.engine.levels
        roles = [role for role in Role if any(role in level.read_energies for level in levels)]
        return [
            {
                "level": level.name,
                "capacity": level.capacity,
                "read_energy_pj": float(level.read_energy),
                "write_energy_pj": float(level.write_energy),
                **{f"read_energy_pj_{role}": float(level.read_energy_of(role)) for role in roles},
                **{f"write_energy_pj_{role}": float(level.write_energy_of(role)) for role in roles},
                "instances_below": 1 if level.fanout is None else level.fanout.instances,
            }
            for level in levels
        ]

    def views(self) -> Sequence[RenderableType]:
        """The machine as a tree."""
        return [Text(engine_tree(self.engine).rstrip("\n"), no_wrap=True, overflow="ignore")]

    def __repr__(self) -> str:
        return f"Machine({self.name!r}, {' > '.join(self.levels)}, {self.pes} PEs)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and other.engine == self.engine

    def __hash__(self) -> int:
        return hash(self.content_hash)


def machine(name: str | os.PathLike[str]) -> Machine:
    """A machine by its preset's name or from a YAML file.

    Parameters
    ----------
    name : a name that `machines` lists; or a path, which is a path object, a text with a folder in it or one
        that ends in ``.yaml`` or ``.yml``

    Raises
    ------
    InputError : for an unknown name with the nearest one, or a file that describes no machine, with the field
    """
    engine = load_engine(name)
    data, where = load_description(name)
    return Machine(engine, data, where)


def machines() -> list[str]:
    """Names of the machines that come with the package."""
    return list_presets()


def machine_of(value: Machine | Engine | str | Path) -> Machine:
    """A machine from whatever stands for one."""
    if isinstance(value, Machine):
        return value
    return Machine(value) if isinstance(value, Engine) else machine(value)
