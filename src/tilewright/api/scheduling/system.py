"""Systems of several sub-accelerators."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from tilewright.api.display import Displayed
from tilewright.api.scheduling.tiled_machine import is_tiled
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.system import System as SubAccelerators
from tilewright.hardware.scheduling.herald.system import system_to_dict
from tilewright.hardware.scheduling.herald.system_file import changed_system, list_systems, load_system
from tilewright.report.text.scheduling.herald.system import system_views


class System(Displayed):
    """Sub-accelerators on one chip, each with a dataflow of its own.  Made by `system`.

    Parameters
    ----------
    hardware : the system in bytes, cycles and pJ
    """

    def __init__(self, hardware: SubAccelerators) -> None:
        self.hardware = hardware

    @property
    def name(self) -> str:
        """The preset's name, the file's stem, or the name with its changes in brackets."""
        return self.hardware.name

    @property
    def engines(self) -> tuple[str, ...]:
        """Names of the sub-accelerators."""
        return tuple(sub.name for sub in self.hardware.subs)

    @property
    def pes(self) -> int:
        """Processing elements of all together."""
        return self.hardware.pes

    def with_(
        self, changes: Mapping[str, object] | None = None, /, *, name: str | None = None, **fields: object
    ) -> System:
        """Another system, with some fields of its file changed; `Machine.with_` explains the arguments.

        ::

            system.with_({"memory": "8 MB", "sub_accelerators.0.pes": 512}, keep_activations=True)

        Raises
        ------
        InputError : naming the field, as for a system file that is wrong there
        """
        own_changes = {**(changes or {}), **{key.replace("__", "."): value for key, value in fields.items()}}
        inside = ",".join(f"{path}={value}" for path, value in own_changes.items())
        title = name or (f"{self.name}[{inside}]" if own_changes else self.name)
        return System(changed_system(self.hardware, own_changes, title))

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain data; fractions are exact text."""
        return system_to_dict(self.hardware)

    def rows(self) -> list[dict[str, Any]]:
        """One row per sub-accelerator."""
        return [
            {
                "name": sub.name,
                "dataflow": sub.flow_names,
                "pes": sub.pes,
                "bytes_per_cycle": float(sub.bandwidth),
                "memory_share": float(sub.share),
            }
            for sub in self.hardware.subs
        ]

    def views(self) -> Sequence[RenderableType]:
        """What is shared, and what each sub-accelerator has."""
        return system_views(self.hardware)

    def __repr__(self) -> str:
        return f"System({self.name!r}, {len(self.engines)} sub-accelerators, {self.pes} PEs)"


def system(name: str | os.PathLike[str]) -> System:
    """A system by its preset's name or from a YAML file, distinguished as for `machine`.

    Raises
    ------
    InputError : for an unknown name with the nearest one, or a file that describes no system, with the field
    """
    return System(load_system(name))


def systems() -> list[str]:
    """Names of the systems that come with the package."""
    return list_systems()


def system_of(value: System | SubAccelerators | str | Path) -> System:
    """A system from whatever stands for one."""
    if isinstance(value, System):
        return value
    if isinstance(value, str | Path) and is_tiled(value):
        raise InputError(str(value), None, f"is a tiled machine, expected tiled_machine({str(value)!r})")
    return System(value) if isinstance(value, SubAccelerators) else system(value)
