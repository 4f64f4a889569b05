"""What a machine takes whether it works or not: static power and area, of all instances of each component."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tilewright.foundation.description import FieldError
from tilewright.hardware.mapping.area_rules import area_at
from tilewright.hardware.mapping.elements import Elements
from tilewright.hardware.mapping.engine import PE, Engine
from tilewright.hardware.mapping.schema import MachineFile


def leakage(machine: MachineFile, engine: Engine) -> dict[str, Fraction]:
    """pJ per cycle of all instances of every component that leaks."""
    powers: dict[str, Fraction | None] = {section.name: section.static_power for section in machine.levels}
    powers[PE] = machine.compute.static_power
    # 1 W at 1 MHz are 1e6 pJ per cycle.
    return {
        name: power * count * 10**6 / engine.clock_mhz
        for name, count in instances(engine)
        if (power := powers[name])
    }


def areas(machine: MachineFile, engine: Engine) -> dict[str, Fraction]:
    """mm2 of all instances of every component that states an area.

    Raises
    ------
    FieldError : for a formula that has no value
    """
    stated: dict[str, Fraction] = {}
    for index, section in enumerate(machine.levels):
        if section.area is not None:
            here = ("levels", index)
            try:
                stated[section.name] = area_at(
                    section.area, Elements.of(machine, index).written_bytes(section, here)
                )
            except ValueError as error:
                raise FieldError((*here, "area"), str(error)) from error
    if machine.compute.area is not None:
        stated[PE] = machine.compute.area
    return {name: stated[name] * count for name, count in instances(engine) if name in stated}


def instances(engine: Engine) -> Iterator[tuple[str, int]]:
    """Every component by name, and how many instances it has."""
    count = 1
    for level in engine.levels:
        yield level.name, count
        if level.fanout is not None:
            count *= level.fanout.instances
    yield PE, count
