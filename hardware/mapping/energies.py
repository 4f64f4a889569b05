"""Energies of a memory that follow its capacity: a table of sizes, or a formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tilewright.foundation.units import BYTES, ROUNDED_DECIMALS, exact, parse_energy, parse_size, shown
from tilewright.hardware.arithmetic import Formula, parse_formula

_NAMES = ("capacity",)
_EXPECTED = (
    "expected a table such as {64 kB: 6, 128 kB: 9}, or a formula such as 0.06 * sqrt(capacity / 32 B), "
    "or {read, write} of formulas"
)


@dataclass(frozen=True, slots=True)
class AccessEnergy:
    """pJ per element (or per word of ``word_bits``) read and written."""

    read: Fraction
    write: Fraction


@dataclass(frozen=True, slots=True)
class EnergyTable:
    """Energies at some capacities, in bytes; other capacities have none."""

    entries: Mapping[Fraction, AccessEnergy]

    def at(self, capacity: Fraction) -> AccessEnergy:
        """Energies of a capacity in bytes; raises ``ValueError`` for one that is not in the table."""
        if capacity not in self.entries:
            known = ", ".join(bytes_text(entry) for entry in sorted(self.entries))
            raise ValueError(f"has no entry for {bytes_text(capacity)}, expected one of {known}")
        return self.entries[capacity]


@dataclass(frozen=True, slots=True)
class EnergyFormula:
    """Energies as formulas of the capacity in bytes, rounded to six decimals."""

    read: Formula
    write: Formula

    def at(self, capacity: Fraction) -> AccessEnergy:
        """Energies of a capacity in bytes; raises ``ValueError`` where a formula has no value above 0."""
        return AccessEnergy(
            *(_rounded(formula.value({"capacity": capacity})) for formula in (self.read, self.write))
        )


EnergyRule = EnergyTable | EnergyFormula


def parse_energy_rule(value: object) -> EnergyRule:
    """A table ``{64 kB: 6, 128 kB: {read: 9, write: 10}}``, a formula, or ``{read, write}`` of formulas.

    Raises
    ------
    ValueError : for anything else
    """
    if isinstance(value, str):
        formula = parse_formula(value, _NAMES)
        return EnergyFormula(formula, formula)
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{_EXPECTED}, got {shown(value)}")
    if set(value) == {"read", "write"}:
        texts = [value["read"], value["write"]]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{_EXPECTED}, got {shown(value)}")
        return EnergyFormula(*(parse_formula(str(text), _NAMES) for text in texts))
    entries: dict[Fraction, AccessEnergy] = {}
    for key, energy in value.items():
        size = parse_size(key)
        if not size.in_bytes:
            raise ValueError(f"expected capacities in bytes, got {shown(key)}")
        if size.amount in entries:
            raise ValueError(f"has {bytes_text(size.amount)} twice")
        entries[size.amount] = _access(energy)
    return EnergyTable(entries)


def bytes_text(size: Fraction) -> str:
    """A size in its largest whole unit, such as ``1.5 kB`` or ``1 MB``."""
    for unit in ("GB", "MB", "kB"):
        if size >= BYTES[unit] and (size * 8 / BYTES[unit]).denominator == 1:
            return f"{exact(size / BYTES[unit])} {unit}"
    return f"{exact(size)} B"


def _access(value: object) -> AccessEnergy:
    if isinstance(value, Mapping):
        if set(value) != {"read", "write"}:
            raise ValueError(f"expected pJ or {{read, write}}, got {shown(value)}")
        return AccessEnergy(parse_energy(value["read"]), parse_energy(value["write"]))
    energy = parse_energy(value)
    return AccessEnergy(energy, energy)


def _rounded(value: Fraction) -> Fraction:
    energy = Fraction(round(value * 10**ROUNDED_DECIMALS), 10**ROUNDED_DECIMALS)
    if energy <= 0:
        raise ValueError(f"expected an energy above 0, the formula gives {exact(energy)}")
    return energy
