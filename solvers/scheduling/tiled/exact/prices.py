"""Energy of round plans in whole numbers: per byte that moves, per cycle, and of atoms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance

DIGITS = 6
"""Decimal places of a pJ that are counted, at most."""

LARGEST, LARGEST_ENERGY = 1 << 60, 1 << 44
"""No product of an energy and a number of cycles, and no energy, may be larger in such units: the former are
integers of CP-SAT, the latter come from floats."""

NEAR = 2.0**-44
"""Part of a float by which a whole number of units may miss it."""


@dataclass(frozen=True, slots=True)
class EnergyUnits:
    """Prices in units of energy, rounded down where they are no whole numbers.

    Parameters
    ----------
    scale : units in a pJ
    atoms : what all atoms take inside their engines
    hop, dram : of a byte over a link between routers, and between DRAM and chip
    read, write : of a byte out of an engine's buffer, and into one
    cycle : of a cycle of all engines' power
    whole : whether nothing was rounded
    """

    scale: int
    atoms: int
    hop: int
    dram: int
    read: int
    write: int
    cycle: int
    whole: bool

    def counted(self, energy: float) -> int:
        """An evaluated energy in units."""
        return int(Fraction(energy) * self.scale + Fraction(1, 2))

    def least(self, instance: RoundInstance) -> int:
        """Units that every plan takes without its power: data from DRAM enter a buffer, outputs leave one."""
        fetched = sum(instance.size[b] for b in instance.readers if instance.parent[b] < 0)
        leaving = sum(size for size, out in zip(instance.size, instance.outputs, strict=False) if out)
        return self.atoms + fetched * (self.dram + self.write) + leaving * (self.dram + self.read)


def energy_units(instance: RoundInstance, energy: Fraction, cycles: int) -> EnergyUnits:
    """The fewest decimal places at which every price is a whole number, or the most that there may be.

    Parameters
    ----------
    energy, cycles : pJ that a plan of interest takes, and by how many cycles they are multiplied
    """
    most = max(energy * (LARGEST // LARGEST_ENERGY), energy * cycles)
    units = _units(instance, 0)
    for digits in range(1, DIGITS + 1):
        if units.whole or most * 10**digits > LARGEST:
            break
        units = _units(instance, digits)
    return units


def _units(instance: RoundInstance, digits: int) -> EnergyUnits:
    dag, machine = instance.dag, instance.machine
    scale, engine, rounded = 10**digits, machine.engine, False

    def units(price: float) -> int:
        nonlocal rounded
        exact = Fraction(price) * scale
        nearest: int = round(exact)
        if abs(exact - nearest) <= Fraction(NEAR) * abs(exact):
            return nearest
        rounded = True
        return int(exact)

    parts = (dag.compute_energy, dag.register_energy, dag.buffer_energy)
    prices = {
        "atoms": sum(units(price) for part in parts for price in part.tolist()),
        "hop": units(machine.hop_energy),
        "dram": units(machine.dram_energy),
        "read": units(engine.buffer_read_energy),
        "write": units(engine.buffer_write_energy),
        "cycle": units(engine.static_power * machine.engines),
    }
    return EnergyUnits(scale, **prices, whole=not rounded)


def most_energy(instance: RoundInstance, rounds: int) -> Fraction:
    """pJ that no plan of so many rounds exceeds, but for its power: all data enter every engine in each."""
    units = _units(instance, 0)
    each = len(instance.net.rates) * (units.hop + 1) + units.dram + units.read + units.write + 3
    moved = rounds * sum(instance.size) * each * (instance.engines + 1)
    return Fraction(units.atoms + 3 * instance.tasks + moved)
