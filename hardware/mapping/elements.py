"""How wide the elements of a level are, and what a figure in elements means there.

Where all tensors that share a capacity or a port have elements of one width, a figure in elements is of
these; where their widths differ only bytes say what is meant.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from tilewright.foundation.description import FieldError, Location
from tilewright.foundation.units import Bandwidth, Size
from tilewright.hardware.mapping.schema import LevelSection, MachineFile, WidthsSection
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of one level.

    Parameters
    ----------
    element_bits : the machine's usual width
    widths : bits of every role that the level keeps
    parted : roles with a partition of their own
    """

    element_bits: int
    widths: MappingABC[Role, int]
    parted: frozenset[Role]

    @classmethod
    def of(cls, machine: MachineFile, index: int) -> Elements:
        """The elements of a machine file's level; raises ``FieldError``."""
        section, here = machine.levels[index], ("levels", index)
        keeps = frozenset(Role) if section.keeps is None else frozenset(section.keeps)
        bits = machine.compute.element_bits
        widths = dict.fromkeys(Role, bits) | _widths(machine.compute.widths, ("compute", "widths"), None)
        widths |= _widths(section.widths, (*here, "widths"), keeps)
        parts = section.partitions
        parted = {role for role in Role if parts is not None and getattr(parts, role.value) is not None}
        return cls(bits, {role: widths[role] for role in Role if role in keeps}, frozenset(parted))

    @property
    def unusual(self) -> dict[Role, int]:
        """Bits of roles that do not have the machine's usual width."""
        return {role: bits for role, bits in self.widths.items() if bits != self.element_bits}

    def in_capacity(self, size: Size, location: Location) -> int:
        """Elements of what roles without a partition share; raises ``FieldError``."""
        return _whole(size, self._bits(self._sharing, size.in_bytes, location), location)

    def in_partition(self, role: Role, size: Size, location: Location) -> int:
        """Elements of a role's partition; raises ``FieldError``."""
        return _whole(size, self.widths[role], location)

    def bits_of(self, size: Size, location: Location) -> int:
        """Bits of a size in whole elements of any role; raises ``FieldError``."""
        bits = self._bits(self.widths, size.in_bytes, location)
        return _whole(size, bits, location) * bits

    def per_cycle(self, rate: Bandwidth, clock_mhz: Fraction, location: Location) -> Fraction:
        """Elements of the machine's usual width per cycle; raises ``FieldError``."""
        bits = self._bits(self.widths, rate.unit != "elements/cycle", location)
        return rate.elements_per_cycle(bits, clock_mhz) * bits / self.element_bits

    def written_bytes(self, section: LevelSection, here: Location) -> Fraction | None:
        """Bytes of the level as its file has them, both buffers together; ``None`` where it has no size."""

        def size_bytes(size: Size, field: str) -> Fraction:
            bits = self._bits(self._sharing, size.in_bytes, (*here, field))
            return size.amount if size.in_bytes else size.amount * Fraction(bits, 8)

        if section.capacity is not None:
            return size_bytes(section.capacity, "capacity")
        if section.elements is not None:
            return size_bytes(Size(Fraction(section.elements), in_bytes=False), "elements")
        if section.banks is not None and section.banks.count is not None:
            return section.banks.count * size_bytes(section.banks.size, "banks")
        if section.partitions is None:
            return None
        parts = {role: getattr(section.partitions, role.value) for role in self.widths}
        return sum(
            (
                part.amount if part.in_bytes else part.amount * Fraction(self.widths[role], 8)
                for role, part in parts.items()
                if part is not None
            ),
            Fraction(0),
        )

    @property
    def _sharing(self) -> list[Role]:
        return [role for role in self.widths if role not in self.parted]

    def _bits(self, roles: Collection[Role], in_bytes: bool, location: Location) -> int:
        """The one width of some roles; the usual one where bytes are written and they have several."""
        widths = {self.widths[role] for role in roles}
        if len(widths) == 1:
            return widths.pop()
        if widths and not in_bytes:
            each = ", ".join(f"{role} {self.widths[role]}" for role in roles)
            message = f"expected bytes, since elements here have different bits ({each}), got elements"
            raise FieldError(location, message)
        return self.element_bits


def of_roles(
    section: BaseModel | None, here: Location, keeps: Collection[Role] | None, what: str, missing: str
) -> dict[Role, Any]:
    """What a section has of single roles, those that are kept or any.

    Parameters
    ----------
    what : it has of roles, in the plural
    missing : what was expected where it has nothing

    Raises
    ------
    FieldError : for an empty section, and for a role that is not kept
    """
    if section is None:
        return {}
    values = {role: getattr(section, role.value) for role in Role}
    values = {role: value for role, value in values.items() if value is not None}
    if not values:
        raise FieldError(here, f"expected {missing} at least one role")
    for role in values:
        if keeps is not None and role not in keeps:
            message = f"expected {what} of roles that the level keeps, got {role}"
            raise FieldError((*here, role.value), message)
    return values


def _widths(section: WidthsSection | None, here: Location, keeps: Collection[Role] | None) -> dict[Role, int]:
    return of_roles(section, here, keeps, "widths", "the bits of")


def _whole(size: Size, bits: int, location: Location) -> int:
    try:
        return size.elements(bits)
    except ValueError as error:
        raise FieldError(location, str(error)) from error
