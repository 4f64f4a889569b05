"""System files: sub-accelerators in human units, checked field by field.

::

    clock_mhz: 1000
    memory: 4 MB
    dram_bandwidth: 16 GB/s
    sub_accelerators:
      - {name: deep, dataflow: nvdla, pes: 128, bandwidth: 4 GB/s}
      - {name: wide, dataflow: shidiannao, pes: 896, bandwidth: 12 GB/s}
      - {name: mine, arch: my.yaml, bandwidth: 8 GB/s}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator

from tilewright.foundation.description import (
    FieldError,
    Location,
    build_description,
    names_a_file,
    parse_description,
    read_description,
)
from tilewright.foundation.errors import InputError, did_you_mean
from tilewright.foundation.named_files import Named
from tilewright.foundation.units import exact, parse_text, shown
from tilewright.hardware.changes import changed
from tilewright.hardware.mapping.engine import Engine
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
from tilewright.hardware.scheduling.own_engine import (
    DRAM_ENERGY,
    MEMORY_ENERGY,
    MODEL,
    Flow,
    OwnEngine,
    own_engine,
)


def _parse_flow(value: object) -> str:
    known = dataflow_names()
    if isinstance(value, str) and value in known:
        return value
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    raise ValueError(f"expected a dataflow among {', '.join(known)}, got {shown(value)}{hint}")


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _parse_arch(value: object) -> str | Engine:
    if isinstance(value, Engine) or (isinstance(value, str) and value.strip()):
        return value
    raise ValueError(f"expected a machine file such as my.yaml, or a preset, got {shown(value)}")


def _parse_model(value: object) -> str:
    if value == MODEL:
        return MODEL
    raise ValueError(f"expected {MODEL}, the cost model of engines in systems, got {shown(value)}")


CostModel = Annotated[str, PlainValidator(_parse_model)]
Style = Annotated[str, PlainValidator(_parse_flow)]
Arch = Annotated[str | Engine, PlainValidator(_parse_arch)]


class SubAcceleratorSection(Section):
    """One sub-accelerator."""

    name: Name = Field(description="the sub-accelerator's name")
    dataflow: Annotated[list[Style] | None, Field(min_length=1), BeforeValidator(_as_list)] = Field(
        default=None, description="a dataflow, or a list of those that it can switch between"
    )
    arch: Arch | None = Field(
        default=None,
        description="instead of dataflow and pes, a machine file (from this file's folder) or preset",
    )
    cost_model: CostModel | None = Field(
        default=None, description="with arch, hierarchy: take a machine of another cost model under this one"
    )
    pes: Count | None = Field(default=None, description="the number of PEs, with a dataflow")
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


class SharedEnergySection(Section):
    """What one byte of the shared memories costs machine files among the sub-accelerators."""

    memory: Energy = MEMORY_ENERGY
    dram: Energy = DRAM_ENERGY


class SystemFile(Section):
    """The whole file; the system is named after it."""

    description: Annotated[str, PlainValidator(parse_text)] = ""
    clock_mhz: Positive = CLOCK_MHZ
    memory: SizeField = Field(description="the global memory, such as 4 MB")
    dram_bandwidth: BandwidthField = Field(description="between DRAM and global memory, such as 16 GB/s")
    prefetch: Flag = True
    context_change: ContextSection = ContextSection()
    keep_activations: Flag = False
    energy: SharedEnergySection | None = None
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
        return parse_system(read_description(installed), str(installed), name, installed.parent)
    path = Path(name_or_path)
    return parse_system(read_description(path), str(path), path.stem, path.parent)


def parse_system(text: str, where: str, name: str, folder: Path | None = None) -> System:
    """The system that a file's text describes.

    Parameters
    ----------
    text : YAML
    where : what errors call the file
    name : the system's name
    folder : from which machine files are sought

    Raises
    ------
    InputError : with line and field, for text that describes none
    """
    return parse_description(text, where, SystemFile, lambda file: _build(file, name, folder))


def _build(file: SystemFile, name: str, folder: Path | None = None) -> System:
    memory = file.memory.elements(8)
    subs: list[SubAccelerator] = []
    for index, section in enumerate(file.sub_accelerators):
        here = ("sub_accelerators", index)
        share = section.memory_share or Fraction(1, len(file.sub_accelerators))
        if share > 1:
            raise FieldError((*here, "memory_share"), f"expected at most 1, got {float(share):g}")
        if any(sub.name == section.name for sub in subs):
            raise FieldError((*here, "name"), f"expected a name of its own, got {section.name!r} twice")
        flows, pes = _runs_under(section, file, here, folder)
        if section.reconfiguration_cycles.denominator != 1:
            raise FieldError((*here, "reconfiguration_cycles"), "expected a whole number of cycles")
        subs.append(
            SubAccelerator(
                name=section.name,
                dataflows=flows,
                pes=pes,
                bandwidth=section.bandwidth.elements_per_cycle(8, file.clock_mhz),
                share=share,
                reconfiguration_cycles=int(section.reconfiguration_cycles),
                energy_factor=section.energy_factor,
            )
        )
    _check_engines(file, subs)
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


def _runs_under(
    section: SubAcceleratorSection, file: SystemFile, here: Location, folder: Path | None
) -> tuple[tuple[Flow, ...], int]:
    """Dataflows and number of PEs: styles of any size, or the machine file that has both."""
    if section.arch is None:
        for field, value in (("dataflow", section.dataflow), ("pes", section.pes)):
            if value is None:
                raise FieldError((*here, field), "missing, expected it, or arch with a machine file")
        if section.cost_model is not None:
            raise FieldError((*here, "cost_model"), "expected none without arch")
        assert section.dataflow is not None
        assert section.pes is not None
        return tuple(dataflow(flow) for flow in section.dataflow), section.pes
    for field, value in (("dataflow", section.dataflow), ("pes", section.pes)):
        if value is not None:
            raise FieldError((*here, field), "expected none beside arch, whose machine has its own")
    try:
        engine = (
            section.arch
            if isinstance(section.arch, Engine)
            else own_engine(section.arch, folder, section.cost_model)
        )
    except (InputError, ValueError) as error:
        raise FieldError((*here, "arch"), str(error)) from None
    energy = file.energy or SharedEnergySection()
    return (OwnEngine(engine, file.clock_mhz, energy.memory, energy.dram),), engine.instances


def _check_engines(file: SystemFile, subs: Sequence[SubAccelerator]) -> None:
    """Names tell engines apart, and styles have unit energies of their own."""
    named: dict[str, Flow] = {}
    for index, sub in enumerate(subs):
        for flow in sub.dataflows:
            if named.setdefault(flow.name, flow) != flow:
                message = f"two different engines are called {flow.name}, expected a file of another name"
                raise FieldError(("sub_accelerators", index, "arch"), message)
    if file.energy is not None and any(sub.own is None for sub in subs):
        message = (
            "expected only where every engine is a machine file, since styles have energies of their own"
        )
        raise FieldError(("energy",), message)


def system_description(system: System) -> dict[str, object]:
    """The fields of a file that describes a system, as `parse_system` reads them."""
    equal = Fraction(1, len(system.subs))
    own = [sub.own for sub in system.subs if sub.own is not None]
    energies = {(flow.memory_energy, flow.dram_energy) for flow in own}
    stated = [{"memory": exact(memory), "dram": exact(dram)} for memory, dram in energies]
    return {
        "description": system.description,
        "clock_mhz": exact(system.clock_mhz),
        "memory": f"{system.memory_bytes} B",
        "dram_bandwidth": f"{exact(system.dram_bandwidth)} B/cycle",
        "prefetch": system.prefetch,
        "context_change": {"cycles": system.context_cycles, "energy": exact(system.context_energy)},
        "keep_activations": system.keep_activations,
        **({"energy": stated[0]} if len(own) == len(system.subs) else {}),
        "sub_accelerators": [
            {
                "name": sub.name,
                **(
                    {"dataflow": [flow.name for flow in sub.dataflows], "pes": sub.pes}
                    if sub.own is None
                    else {"arch": sub.own.engine}
                ),
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
