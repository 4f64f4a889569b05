"""Systems as plain data, as `tilewright.hardware.scheduling.herald.system.system_to_dict` writes them."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Field

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.styles import dataflow
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System, system_to_dict
from tilewright.hardware.scheduling.own_engine import Flow, OwnEngine, expect_engine_of_system
from tilewright.report.records.claims import EXACT_DIGITS
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.report.records.mapping.operator import Record

ExactNumber = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$", max_length=EXACT_DIGITS)]
"""A decimal or a fraction as text."""


class SubAcceleratorRecord(Record):
    """One sub-accelerator."""

    name: str
    dataflows: list[str] = Field(min_length=1)
    pes: int = Field(ge=1)
    bytes_per_cycle: ExactNumber
    memory_share: ExactNumber
    reconfiguration_cycles: int = Field(ge=0)
    energy_factor: ExactNumber

    def flows(self, clock_mhz: Fraction) -> tuple[Flow, ...]:
        """What it runs under; raises ``InputError`` for an unknown dataflow."""
        return tuple(dataflow(name) for name in self.dataflows)


class OwnEngineRecord(SubAcceleratorRecord):
    """A sub-accelerator that is a machine file."""

    arch: EngineRecord
    memory_energy_pj: ExactNumber = Field(description="per byte of the global memory")
    dram_energy_pj: ExactNumber = Field(description="per byte of DRAM")

    def flows(self, clock_mhz: Fraction) -> tuple[Flow, ...]:
        energies = Fraction(self.memory_energy_pj), Fraction(self.dram_energy_pj)
        engine = self.arch.build()
        try:
            expect_engine_of_system(engine)
        except ValueError as error:
            raise InputError(f"sub_accelerators.{self.name}", "arch", str(error)) from None
        return (OwnEngine(engine, clock_mhz, *energies),)


class SystemRecord(Record):
    """A system in full."""

    name: str
    description: str
    memory_bytes: int = Field(ge=1)
    clock_mhz: ExactNumber
    dram_bytes_per_cycle: ExactNumber
    prefetch: bool
    context_cycles: int = Field(ge=0)
    context_energy_pj: ExactNumber
    keep_activations: bool = False
    sub_accelerators: list[SubAcceleratorRecord | OwnEngineRecord] = Field(min_length=1)

    @classmethod
    def of(cls, system: System) -> SystemRecord:
        """The record of a system."""
        return cls.model_validate(system_to_dict(system))

    def build(self) -> System:
        """The system; raises ``InputError`` for an unknown dataflow."""
        return System(
            name=self.name,
            subs=tuple(
                SubAccelerator(
                    name=sub.name,
                    dataflows=sub.flows(Fraction(self.clock_mhz)),
                    pes=sub.pes,
                    bandwidth=Fraction(sub.bytes_per_cycle),
                    share=Fraction(sub.memory_share),
                    reconfiguration_cycles=sub.reconfiguration_cycles,
                    energy_factor=Fraction(sub.energy_factor),
                )
                for sub in self.sub_accelerators
            ),
            memory_bytes=self.memory_bytes,
            clock_mhz=Fraction(self.clock_mhz),
            dram_bandwidth=Fraction(self.dram_bytes_per_cycle),
            prefetch=self.prefetch,
            context_cycles=self.context_cycles,
            context_energy=Fraction(self.context_energy_pj),
            keep_activations=self.keep_activations,
            description=self.description,
        )
