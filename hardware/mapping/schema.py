"""The machine file: pydantic models of its fields in human units, before any conversion.

Field meanings are those of ``engine.py``; ``build.py`` converts and checks what concerns several fields.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from tilewright.foundation.errors import did_you_mean
from tilewright.foundation.units import (
    Bandwidth,
    Size,
    parse_bandwidth,
    parse_count,
    parse_energy,
    parse_flag,
    parse_name,
    parse_number,
    parse_positive,
    parse_power,
    parse_size,
    parse_text,
    shown,
)
from tilewright.hardware.mapping.area_rules import Area, parse_area
from tilewright.hardware.mapping.cost_models import COST_MODELS
from tilewright.hardware.mapping.energies import EnergyRule, parse_energy_rule
from tilewright.workloads.mapping.operator import Role

MAX_LEVELS = 8
DEFAULT_COST_MODEL = "hierarchy"
DIMENSIONS = ("N", "G", "K", "C", "P", "Q", "R", "S")


def _one_of(value: object, known: tuple[str, ...], what: str) -> str:
    if isinstance(value, str) and value in known:
        return str(value)
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    raise ValueError(f"expected {what} among {', '.join(known)}, got {shown(value)}{hint}")


def _parse_cost_model(value: object) -> str:
    if isinstance(value, str) and value in COST_MODELS:
        return value
    return _one_of(value, tuple(COST_MODELS.names()), "a cost model")


def _parse_role(value: object) -> Role:
    return Role(_one_of(value, tuple(role.value for role in Role), "a role"))


def _parse_dimension(value: object) -> str:
    return _one_of(value, DIMENSIONS, "a dimension")


def _parse_overlap(value: object) -> bool:
    return _one_of(value, ("full", "none"), "an overlap") == "full"


def _distinct(value: object) -> object:
    entries = value if isinstance(value, list) else []
    for index, item in enumerate(entries):
        if item in entries[:index]:
            raise ValueError(f"expected every entry once, got {shown(item)} twice")
    return value


def _read_and_write(value: object) -> object:
    return value if isinstance(value, dict) else {"read": value, "write": value}


Name = Annotated[str, PlainValidator(parse_name)]
Count = Annotated[int, PlainValidator(parse_count)]
Flag = Annotated[bool, PlainValidator(parse_flag)]
Energy = Annotated[Fraction, PlainValidator(parse_energy)]
Power = Annotated[Fraction, PlainValidator(parse_power)]
Number = Annotated[Fraction, PlainValidator(parse_number)]
Positive = Annotated[Fraction, PlainValidator(parse_positive)]
SizeField = Annotated[Size, PlainValidator(parse_size)]
BandwidthField = Annotated[Bandwidth, PlainValidator(parse_bandwidth)]
Roles = list[Annotated[Role, PlainValidator(_parse_role)]]
Dimensions = list[Annotated[str, PlainValidator(_parse_dimension)]]


class Section(BaseModel):
    """A mapping of the file: errors name unknown, missing and empty fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, data: object) -> object:
        if isinstance(data, cls):
            return data
        if not isinstance(data, MappingABC):
            raise ValueError(f"expected a mapping with {_fields(cls)}, got {shown(data)}")
        for key, value in data.items():
            if key not in cls.model_fields:
                hint = did_you_mean(str(key), cls.model_fields)
                raise _at(key, f"unknown field{hint or f', expected one of {_fields(cls)}'}")
            if value is None:
                raise _at(key, "left empty, expected a value (or leave the field out)")
        for key, info in cls.model_fields.items():
            if info.is_required() and key not in data:
                raise _at(key, f"missing, expected {info.description}")
        return data


def _fields(section: type[BaseModel]) -> str:
    return ", ".join(section.model_fields)


def _at(key: object, message: str) -> PydanticCustomError:
    """An error one step below the section that found it."""
    context = {"key": key if isinstance(key, int) else str(key), "text": message}
    return PydanticCustomError("section", "{text}", context)


class WidthsSection(Section):
    inputs: Count | None = None
    weights: Count | None = None
    outputs: Count | None = None


class ComputeSection(Section):
    mac_energy: Energy = Field(description="pJ per multiply-accumulate")
    element_bits: Count = Field(description="bits of one tensor element")
    widths: WidthsSection | None = Field(
        default=None, description="bits of elements of some roles (absent: element_bits)"
    )
    static_power: Power | None = Field(default=None, description="W that every PE takes, idle or not")
    area: Number | None = Field(default=None, description="mm2 of one PE")


class DmaSection(Section):
    startup_cycles: Number = Field(description="cycles of the DMA clock per invocation")
    cycles_per_byte: Number = Field(description="cycles of the DMA clock per byte")
    clock_mhz: Positive = Field(description="the DMA clock in MHz")


class AxisSection(Section):
    name: Name = Field(description="the axis's name, such as x")
    size: Count = Field(description="the number of instances along the axis")
    carries: Annotated[Dimensions, Field(min_length=1), BeforeValidator(_distinct)] | None = Field(
        default=None, description="dimensions that may be spread along it (absent: any)"
    )


class FanoutSection(Section):
    axes: Annotated[list[AxisSection], Field(min_length=1)] = Field(description="a list of axes")
    energy: Energy = Field(default=Fraction(0), description="pJ per element delivered to one instance")
    multicast: Flag = Field(default=True, description="one read serves all instances that need it")
    reduction: Flag = Field(default=True, description="partial sums are added on their way out")
    sharing: Flag = Field(default=False, description="buffers store shared data once")
    hop_energy: Energy | None = Field(
        default=None, description="pJ per element passed on between buffers that share (absent: energy)"
    )


class BanksSection(Section):
    size: SizeField = Field(description="the size of one bank, such as 2 kB")
    count: Count | None = Field(
        default=None, description="the number of banks, both buffers together (absent: as the capacity has)"
    )


class PartitionsSection(Section):
    inputs: SizeField | None = None
    weights: SizeField | None = None
    outputs: SizeField | None = None


class EnergySection(Section):
    read: Energy = Field(description="pJ per element (or per word of word_bits) read")
    write: Energy = Field(description="pJ per element (or per word of word_bits) written")


Energies = Annotated[EnergySection, BeforeValidator(_read_and_write)]


class RoleEnergiesSection(Section):
    inputs: Energies | None = None
    weights: Energies | None = None
    outputs: Energies | None = None


class BandwidthSection(Section):
    read: BandwidthField | None = None
    write: BandwidthField | None = None
    shared: BandwidthField | None = Field(default=None, description="of one port for reads and writes")


class SetupSection(Section):
    tile: Number | None = Field(default=None, description="cycles per iteration of the level's loops")
    transfer: Number | None = Field(default=None, description="cycles per tile that its port moves")
    row: Number | None = Field(default=None, description="cycles per row of such a tile")
    instruction: Number | None = Field(
        default=None, description="cycles of compute per iteration of the loops outside the level"
    )


class LevelSection(Section):
    """One memory level; ``capacity`` is what all roles without a partition of their own share."""

    name: Name = Field(description="the level's name, such as DRAM; PE, MAC and leakage are taken")
    energy: Energies | None = Field(default=None, description="pJ per access, one number or {read, write}")
    energy_by_capacity: Annotated[EnergyRule, PlainValidator(parse_energy_rule)] | None = Field(
        default=None, description="instead of energy, a table from capacities to energies, or a formula"
    )
    energy_by_role: RoleEnergiesSection | None = Field(
        default=None, description="pJ per access of some roles (absent: energy)"
    )
    word_bits: Count | None = Field(default=None, description="bits that one access of `energy` moves")
    widths: WidthsSection | None = Field(
        default=None, description="bits of elements of some roles here (absent: as in compute)"
    )
    capacity: SizeField | None = Field(default=None, description="a size, such as 128 kB")
    elements: Count | None = Field(default=None, description="the capacity in elements")
    banks: BanksSection | None = None
    partitions: PartitionsSection | None = None
    double_buffered: Flag = Field(default=False, description="two copies, so that half is usable")
    streamed: Flag = Field(default=False, description="filled while in use, at full capacity")
    bandwidth: Annotated[BandwidthSection, BeforeValidator(_read_and_write)] | None = None
    overlap: Annotated[bool, PlainValidator(_parse_overlap)] | None = Field(
        default=None, description="full or none: whether what it hands inwards hides behind other work"
    )
    setup: SetupSection | None = Field(default=None, description="cycles beside those of the bandwidth")
    row: SizeField | None = Field(default=None, description="the longest run that is one row, such as 64 B")
    refetch: Flag = Field(default=False, description="its tiles are fetched anew at every iteration outside")
    drained: Flag = Field(default=False, description="results that leave are read there once more")
    keeps: Annotated[Roles, Field(min_length=1), BeforeValidator(_distinct)] | None = None
    may_bypass: Annotated[Roles, BeforeValidator(_distinct)] = Field(default_factory=list)
    sliding_window: Flag = False
    fanout: FanoutSection | None = None
    static_power: Power | None = Field(default=None, description="W that every instance takes, idle or not")
    area: Annotated[Area, PlainValidator(parse_area)] | None = Field(
        default=None, description="mm2 of one instance, or a formula of its capacity"
    )


class MachineFile(Section):
    """The whole file; the machine is named after it."""

    description: Annotated[str, PlainValidator(parse_text)] = ""
    cost_model: Annotated[str, PlainValidator(_parse_cost_model)] = DEFAULT_COST_MODEL
    clock_mhz: Positive = Field(description="the engine's clock in MHz")
    compute: ComputeSection = Field(description="{mac_energy, element_bits}")
    dma: DmaSection | None = None
    levels: Annotated[list[LevelSection], Field(min_length=2, max_length=MAX_LEVELS)] = Field(
        description="memory levels, outermost (DRAM) first"
    )
