"""System files: sub-accelerators in human units, checked field by field.

::

    clock_mhz: 1000
    memory: 4 MB
    dram_bandwidth: 16 GB/s
    sub_accelerators:
      - {name: deep, dataflow: nvdla, pes: 128, bandwidth: 4 GB/s}
      - {name: wide, dataflow: shidiannao, pes: 896, bandwidth: 12 GB/s}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator

from tilewright.foundation.description import (
    FieldError,
    build_description,
    names_a_file,
    parse_description,
    read_description,
)
from tilewright.foundation.errors import did_you_mean
from tilewright.foundation.named_files import Named
from tilewright.foundation.units import exact, parse_text, shown
from tilewright.hardware.changes import changed
from tilewright.hardware.mapping.schema import (
    BandwidthField,
    Count,
    Energy,
    Flag,
    Name,
    Number,
    Positive,
    Section,
    SizeField,
)
from tilewright.hardware.mapping.styles import CLOCK_MHZ, dataflow, dataflow_names
from tilewright.hardware.scheduling.herald.classes import list_system_presets, system_preset
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System


def _parse_flow(value: object) -> str:
    known = dataflow_names()
    if isinstance(value, str) and value in known:
        return value
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    raise ValueError(f"expected a dataflow among {', '.join(known)}, got {shown(value)}{hint}")


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Flow = Annotated[str, PlainValidator(_parse_flow)]


class SubAcceleratorSection(Section):
    """One sub-accelerator."""

    name: Name = Field(description="the sub-accelerator's name")
    dataflow: Annotated[list[Flow], Field(min_length=1), BeforeValidator(_as_list)] = Field(
        description="a dataflow, or a list of those that it can switch between"
    )
    pes: Count = Field(description="the number of PEs")
    bandwidth: BandwidthField = Field(description="between global memory and PEs, such as 4 GB/s")
    memory_share: Positive | None = Field(
        default=None, description="the part of the global memory for one layer's tiles (absent: equal parts)"
    )
    reconfiguration_cycles: Number = Fraction(0)
    energy_factor: Positive = Fraction(1)


class ContextSection(Section):
    """What it costs to read a result that was laid out for another dataflow."""

    cycles: Number = Fraction(0)
    energy: Energy = Fraction(0)


class SystemFile(Section):
    """The whole file; the system is named after it."""

    description: Annotated[str, PlainValidator(parse_text)] = ""
    clock_mhz: Positive = CLOCK_MHZ
    memory: SizeField = Field(description="the global memory, such as 4 MB")
    dram_bandwidth: BandwidthField = Field(description="between DRAM and global memory, such as 16 GB/s")
    prefetch: Flag = True
    context_change: ContextSection = ContextSection()
    keep_activations: Flag = False
    sub_accelerators: Annotated[list[SubAcceleratorSection], Field(min_length=1)] = Field(
        description="a list of sub-accelerators"
    )


SYSTEMS = Named(list_system_presets, "systems")


def list_systems() -> list[str]:
    """Names of the systems that come with the package or with installed ones."""
    return SYSTEMS.names()


def load_system(name_or_path: str | os.PathLike[str]) -> System:
    """The system of a preset name or of a YAML file, distinguished as for machines.

    Raises
    ------
    InputError : for an unknown name, an unreadable file, or a file that does not describe a system
    """
    if not names_a_file(name_or_path):
        name = os.fspath(name_or_path)
        if name in SYSTEMS.shipped():
            return system_preset(name)
        installed = SYSTEMS.installed(name)
        return parse_system(read_description(installed), str(installed), name)
    path = Path(name_or_path)
    return parse_system(read_description(path), str(path), path.stem)


def parse_system(text: str, where: str, name: str) -> System:
    """The system that a file's text describes; raises ``InputError`` with line and field otherwise."""
    return parse_description(text, where, SystemFile, lambda file: _build(file, name))


def _build(file: SystemFile, name: str) -> System:
    memory = file.memory.elements(8)
    subs: list[SubAccelerator] = []
    for index, section in enumerate(file.sub_accelerators):
        here = ("sub_accelerators", index)
        share = section.memory_share or Fraction(1, len(file.sub_accelerators))
        if share > 1:
            raise FieldError((*here, "memory_share"), f"expected at most 1, got {float(share):g}")
        if any(sub.name == section.name for sub in subs):
            raise FieldError((*here, "name"), f"expected a name of its own, got {section.name!r} twice")
        if section.reconfiguration_cycles.denominator != 1:
            raise FieldError((*here, "reconfiguration_cycles"), "expected a whole number of cycles")
        subs.append(
            SubAccelerator(
                name=section.name,
                dataflows=tuple(dataflow(flow) for flow in section.dataflow),
                pes=section.pes,
                bandwidth=section.bandwidth.elements_per_cycle(8, file.clock_mhz),
                share=share,
                reconfiguration_cycles=int(section.reconfiguration_cycles),
                energy_factor=section.energy_factor,
            )
        )
    if file.context_change.cycles.denominator != 1:
        raise FieldError(("context_change", "cycles"), "expected a whole number of cycles")
    return System(
        name=name,
        subs=tuple(subs),
        memory_bytes=memory,
        clock_mhz=file.clock_mhz,
        dram_bandwidth=file.dram_bandwidth.elements_per_cycle(8, file.clock_mhz),
        prefetch=file.prefetch,
        context_cycles=int(file.context_change.cycles),
        context_energy=file.context_change.energy,
        keep_activations=file.keep_activations,
        description=file.description,
    )


def system_description(system: System) -> dict[str, object]:
    """The fields of a file that describes a system, as `parse_system` reads them."""
    equal = Fraction(1, len(system.subs))
    return {
        "description": system.description,
        "clock_mhz": exact(system.clock_mhz),
        "memory": f"{system.memory_bytes} B",
        "dram_bandwidth": f"{exact(system.dram_bandwidth)} B/cycle",
        "prefetch": system.prefetch,
        "context_change": {"cycles": system.context_cycles, "energy": exact(system.context_energy)},
        "keep_activations": system.keep_activations,
        "sub_accelerators": [
            {
                "name": sub.name,
                "dataflow": [flow.name for flow in sub.dataflows],
                "pes": sub.pes,
                "bandwidth": f"{exact(sub.bandwidth)} B/cycle",
                **({} if sub.share == equal else {"memory_share": exact(sub.share)}),
                "reconfiguration_cycles": sub.reconfiguration_cycles,
                "energy_factor": exact(sub.energy_factor),
            }
            for sub in system.subs
        ],
    }


def changed_system(system: System, changes: Mapping[str, object], name: str) -> System:
    """A system with some fields of its file changed; raises ``InputError`` with the field."""
    data = changed(system_description(system), changes, system.name)
    return build_description(data, system.name, SystemFile, lambda file: _build(file, name))
