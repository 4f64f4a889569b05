"""Sizes, rates and energies of memories whose tensors may have elements of several widths.

Where all of them have one width, fields count in such elements; else sizes and rates are in bytes, and every
role has an energy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from fractions import Fraction
from math import gcd
from typing import Any

from tilewright.foundation.units import exact
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import is_exact_rate, rate_text
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

Widths = MappingABC[Role, int]
"""Bits of an element of every role that a memory keeps."""


def one_width(widths: Widths) -> int | None:
    """The bits of all elements; ``None`` where they differ."""
    bits = {*widths.values()}
    return bits.pop() if len(bits) == 1 else None


def apart(widths: Widths, usual: Widths) -> dict[str, dict[str, int]]:
    """The field of a level's own widths, where some differ from the machine's."""
    own = {role.value: bits for role, bits in widths.items() if bits != usual[role]}
    return {"widths": own} if own else {}


def capacity_field(
    bits: Fraction | int, widths: Widths, element_bits: int, place: Field, bundle: Bundle, *, doubled: bool
) -> dict[str, Any]:
    """The field of a memory's size.

    Parameters
    ----------
    bits : of the whole memory
    element_bits : the machine's usual width, in which bytes have to be whole
    doubled : whether half of it is usable
    """
    width = one_width(widths)
    unit = width or element_bits
    count = int(bits // unit)
    if count < (2 if doubled else 1):
        raise place.error(f"holds no element of {unit} bits")
    count -= count % 2 if doubled else 0
    if width is not None:
        return {"elements": count}
    least = gcd(*widths.values()) * (2 if doubled else 1)
    if bits // least * least != count * unit:
        message = f"is rounded down to {count * unit} bits, whole elements of {unit} bits"
        place.lose(bundle.ledger, Effect.SPACE, message)
    return {"capacity": f"{exact(Fraction(count * unit, 8))} B"}


def rate(bits_per_cycle: Fraction, widths: Widths, lossy: Callable[[], None]) -> str:
    """A bandwidth of a machine file; ``lossy`` is called where it had to be rounded."""
    width = one_width(widths)
    amount = Fraction(bits_per_cycle) / (8 if width is None else width)
    if not is_exact_rate(amount):
        lossy()
    return rate_text(amount, "elements/cycle" if width is not None else "B/cycle")


def energies(
    widths: Widths, per_element: Callable[[int], tuple[Fraction, Fraction]], *, by_width: bool
) -> dict[str, Any]:
    """The field of a memory's energies.

    Parameters
    ----------
    per_element : pJ (read, write) of an element of so many bits
    by_width : whether that depends on the bits at all
    """

    def field(bits: int) -> Fraction | dict[str, Fraction]:
        read, write = per_element(bits)
        return read if read == write else {"read": read, "write": write}

    width = one_width(widths)
    if width is not None or not by_width:
        return {"energy": field(width or 0)}
    return {"energy_by_role": {role.value: field(bits) for role, bits in widths.items()}}
