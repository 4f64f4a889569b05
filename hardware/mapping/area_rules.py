"""Areas in machine files: a number, or a formula of the capacity."""

from __future__ import annotations

from fractions import Fraction

from tilewright.foundation.units import ROUNDED_DECIMALS, exact, parse_number
from tilewright.hardware.arithmetic import Formula, parse_formula

Area = Fraction | Formula
"""mm2, or a formula of the capacity in bytes."""


def parse_area(value: object) -> Area:
    """An area in mm2, or a formula such as ``0.02 + 0.004 * capacity / 1 kB``; raises ``ValueError``."""
    text = value.removesuffix("mm2").strip() if isinstance(value, str) else value
    try:
        return parse_number(text, "an area in mm2")
    except ValueError:
        if not isinstance(value, str) or value.strip().replace(".", "").lstrip("-").isdigit():
            raise
    return parse_formula(value, ("capacity",))


def area_at(area: Area, capacity: Fraction | None) -> Fraction:
    """The area of a memory of so many bytes.

    Raises
    ------
    ValueError : for a formula without a capacity, or without a value of at least 0
    """
    if isinstance(area, Fraction):
        return area
    if capacity is None:
        raise ValueError("expected a capacity that the area can follow")
    value = area.value({"capacity": capacity})
    rounded = Fraction(round(value * 10**ROUNDED_DECIMALS), 10**ROUNDED_DECIMALS)
    if rounded < 0:
        raise ValueError(f"expected an area of at least 0, the formula gives {exact(rounded)}")
    return rounded
