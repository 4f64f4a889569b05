"""Machines that set roles and ports apart: widths and energies of their own, ports that are shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tilewright.hardware.mapping.engine import Engine, MemoryLevel

Choose = Callable[[Sequence[Any]], Any]
"""Picks one of several."""

BITS = (16, 16, 8, 24, 4)
RATES = (None, Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(4))


def particular(engine: Engine, choose: Choose) -> Engine:
    """The machine with some of these at every level."""
    return replace(engine, levels=tuple(_level(level, engine, choose) for level in engine.levels))


def _level(level: MemoryLevel, engine: Engine, choose: Choose) -> MemoryLevel:
    kept = sorted(level.keeps)
    bits = {role: choose(BITS) for role in kept}
    energies = [{role: choose([0, 1, 3, 20]) for role in kept if choose([False, False, True])} for _ in "rw"]
    plain_level = replace(
        level,
        widths={role: width for role, width in bits.items() if width != engine.element_bits},
        read_energies={role: Fraction(energy, 2) for role, energy in energies[0].items()},
        write_energies={role: Fraction(energy, 5) for role, energy in energies[1].items()},
    )
    if choose([False, True]):
        return replace(plain_level, read_bandwidth=None, write_bandwidth=None, shared_bandwidth=choose(RATES))
    return plain_level
