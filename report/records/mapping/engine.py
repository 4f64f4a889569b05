"""Engines as plain data: the inverse of `tilewright.hardware.mapping.load.engine_to_dict`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Dma, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import engine_hash, engine_to_dict
from tilewright.hardware.mapping.timing import Timing
from tilewright.report.records.mapping.operator import Record
from tilewright.workloads.mapping.operator import Role

Exact = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$", max_length=80)]
RoleName = Literal["inputs", "weights", "outputs"]


class AxisOfArray(Record):
    """One axis of an array; ``carries`` is null where any dimension may be spread along it."""

    name: str
    size: int = Field(ge=1)
    carries: list[str] | None


class FanoutRecord(Record):
    """The array below a level, and its network."""

    axes: list[AxisOfArray]
    energy: Exact
    multicast: bool
    reduction: bool

    def build(self) -> Fanout:
        axes = tuple(
            ArrayAxis(axis.name, axis.size, None if axis.carries is None else frozenset(axis.carries))
            for axis in self.axes
        )
        return Fanout(axes, Fraction(self.energy), self.multicast, self.reduction)


class SharingFanoutRecord(FanoutRecord):
    """An array whose buffers share what several of them read."""

    sharing: Literal[True]
    hop_energy: Exact

    def build(self) -> Fanout:
        return replace(super().build(), sharing=True, hop_energy=Fraction(self.hop_energy))


class TimingRecord(Record):
    """What a level's transfers cost beside bandwidth, where that is anything."""

    overlap: bool | None = None
    tile: Exact = "0"
    transfer: Exact = "0"
    row: Exact = "0"
    instruction: Exact = "0"
    row_bits: Annotated[int, Field(ge=1)] | None = None
    refetch: bool = False
    drained: bool = False

    def build(self) -> Timing:
        return Timing.read(self.model_dump())


class LevelRecord(Record):
    """One memory level; sizes in elements, energies in pJ per element, rates in elements per cycle."""

    name: str
    capacity: int | None
    partitions: dict[RoleName, int]
    bank: Annotated[int, Field(ge=1)] | None
    read_energy: Exact
    write_energy: Exact
    read_bandwidth: Exact | None
    write_bandwidth: Exact | None
    double_buffered: bool
    keeps: list[RoleName]
    may_bypass: list[RoleName]
    sliding_window: bool
    fanout: FanoutRecord | SharingFanoutRecord | None

    def build(self) -> MemoryLevel:
        return MemoryLevel(
            name=self.name,
            capacity=self.capacity,
            read_energy=Fraction(self.read_energy),
            write_energy=Fraction(self.write_energy),
            partitions={Role(role): size for role, size in self.partitions.items()},
            bank=self.bank,
            read_bandwidth=None if self.read_bandwidth is None else Fraction(self.read_bandwidth),
            write_bandwidth=None if self.write_bandwidth is None else Fraction(self.write_bandwidth),
            double_buffered=self.double_buffered,
            keeps=frozenset(Role(role) for role in self.keeps),
            may_bypass=frozenset(Role(role) for role in self.may_bypass),
            sliding_window=self.sliding_window,
            fanout=None if self.fanout is None else self.fanout.build(),
        )


class ParticularLevelRecord(LevelRecord):
    """A level that sets roles or ports apart; only roles that differ have entries."""

    shared_bandwidth: Exact | None
    read_energies: dict[RoleName, Exact]
    write_energies: dict[RoleName, Exact]
    widths: dict[RoleName, Annotated[int, Field(ge=1)]]

    def build(self) -> MemoryLevel:
        return replace(
            super().build(),
            shared_bandwidth=None if self.shared_bandwidth is None else Fraction(self.shared_bandwidth),
            read_energies={Role(role): Fraction(energy) for role, energy in self.read_energies.items()},
            write_energies={Role(role): Fraction(energy) for role, energy in self.write_energies.items()},
            widths={Role(role): bits for role, bits in self.widths.items()},
        )


class TimedLevelRecord(LevelRecord):
    """A level whose transfers cost more than bandwidth says."""

    timing: TimingRecord

    def build(self) -> MemoryLevel:
        return replace(super().build(), timing=self.timing.build())


class TimedParticularLevelRecord(ParticularLevelRecord):
    """A level that sets roles or ports apart, and whose transfers cost more."""

    timing: TimingRecord

    def build(self) -> MemoryLevel:
        return replace(super().build(), timing=self.timing.build())


class DmaRecord(Record):
    """The DMA engine."""

    startup: Exact
    per_byte: Exact
    clock_ratio: Exact


class EngineRecord(Record):
    """An engine in full; numbers are exact text."""

    name: str
    description: str
    cost_model: str
    element_bits: int = Field(ge=1)
    mac_energy: Exact
    clock_mhz: Exact
    levels: list[LevelRecord | ParticularLevelRecord | TimedLevelRecord | TimedParticularLevelRecord] = Field(
        min_length=1
    )
    dma: DmaRecord | None
    leakage: dict[str, Exact] = Field(default_factory=dict)
    area: dict[str, Exact] = Field(default_factory=dict)

    @classmethod
    def of(cls, engine: Engine) -> EngineRecord:
        """The record of an engine."""
        return cls.model_validate(engine_to_dict(engine))

    def build(self) -> Engine:
        """The engine."""
        dma = None
        if self.dma is not None:
            figures = (self.dma.startup, self.dma.per_byte, self.dma.clock_ratio)
            dma = Dma(*(Fraction(figure) for figure in figures))
        return Engine(
            name=self.name,
            cost_model=self.cost_model,
            element_bits=self.element_bits,
            mac_energy=Fraction(self.mac_energy),
            clock_mhz=Fraction(self.clock_mhz),
            levels=tuple(level.build() for level in self.levels),
            dma=dma,
            description=self.description,
            leakage={name: Fraction(power) for name, power in self.leakage.items()},
            area={name: Fraction(area) for name, area in self.area.items()},
        )


class ArchRecord(Record):
    """A machine: its name, the hash of its content, and the content itself."""

    name: str
    hash: str
    engine: EngineRecord

    @classmethod
    def of(cls, engine: Engine) -> ArchRecord:
        """The record of an engine, with its hash."""
        return cls(name=engine.name, hash=engine_hash(engine), engine=EngineRecord.of(engine))

    def build(self, where: str) -> Engine:
        """The engine; raises ``InputError`` where content and hash disagree."""
        engine = self.engine.build()
        if engine_hash(engine) != self.hash:
            raise InputError(where, "arch.hash", "does not match the engine in the file, expected the same")
        return engine
