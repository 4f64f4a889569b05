"""What an access of a level costs, from a machine file's fields: in general, and for roles apart."""

from __future__ import annotations

from fractions import Fraction

from tilewright.foundation.description import FieldError, Location
from tilewright.foundation.units import MAX_DECIMALS, exact
from tilewright.hardware.mapping.elements import Elements, of_roles
from tilewright.hardware.mapping.energies import AccessEnergy
from tilewright.hardware.mapping.schema import LevelSection
from tilewright.workloads.mapping.operator import Role


def level_energies(
    section: LevelSection, here: Location, elements: Elements
) -> tuple[AccessEnergy, dict[Role, AccessEnergy]]:
    """pJ per element: of most roles, and of those for which it is another one.

    Energies are per element, whatever its width; where ``word_bits`` stands they are per word, so that wide
    elements cost more.  Where every role that is kept has its own, the first is 0 and stands for none.

    Raises
    ------
    FieldError : for energies that are missing, of roles that the level does not keep, or too fine
    """
    written = _role_energies(section, here, elements)
    base = AccessEnergy(Fraction(0), Fraction(0))
    if written.keys() != elements.widths.keys() or section.energy or section.energy_by_capacity:
        base = _energy(section, here, elements)

    def per_element(energy: AccessEnergy, bits: int, field: str) -> AccessEnergy:
        width = Fraction(bits, section.word_bits or bits)
        return AccessEnergy(
            *(_per_element(amount * width, (*here, field)) for amount in (energy.read, energy.write))
        )

    own = {
        role: per_element(energy, elements.widths[role], "energy_by_role") for role, energy in written.items()
    }
    if section.word_bits is not None:
        for role, bits in elements.unusual.items():
            own.setdefault(role, per_element(base, bits, "energy"))
    if own.keys() == elements.widths.keys():
        return AccessEnergy(Fraction(0), Fraction(0)), own
    return per_element(base, elements.element_bits, "energy"), own


def _role_energies(section: LevelSection, here: Location, elements: Elements) -> dict[Role, AccessEnergy]:
    """pJ per access of some roles, as written."""
    field = (*here, "energy_by_role")
    energies = of_roles(section.energy_by_role, field, elements.widths, "energies", "the energy of")
    return {role: AccessEnergy(energy.read, energy.write) for role, energy in energies.items()}


def _energy(section: LevelSection, here: Location, elements: Elements) -> AccessEnergy:
    """pJ per access as written, or as they follow from the level's whole capacity."""
    rule = section.energy_by_capacity
    if section.energy is not None:
        if rule is not None:
            raise FieldError((*here, "energy"), "expected either energy or energy_by_capacity, got both")
        return AccessEnergy(section.energy.read, section.energy.write)
    if rule is None:
        message = f"missing, expected {LevelSection.model_fields['energy'].description}"
        raise FieldError((*here, "energy"), message)
    size = elements.written_bytes(section, here)
    if size is None:
        raise FieldError((*here, "energy_by_capacity"), "expected a capacity that the energy can follow")
    try:
        return rule.at(size)
    except ValueError as error:
        raise FieldError((*here, "energy_by_capacity"), str(error)) from error


def _per_element(energy: Fraction, location: Location) -> Fraction:
    if (energy * 10**MAX_DECIMALS).denominator != 1:
        message = f"expected at most {MAX_DECIMALS} decimals per element too, got {exact(energy)} pJ"
        raise FieldError(location, message)
    return energy
