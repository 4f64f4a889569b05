"""Quantities of machine files: sizes, energies, bandwidths and counts with their units.

Every parser takes a value as YAML gives it (numbers with a point arrive as ``Decimal``), returns an exact
figure, and raises ``ValueError`` with what was expected.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

MAX_DECIMALS = 12
"""Of numbers in files."""
ROUNDED_DECIMALS = 6
"""Of numbers that follow from formulas and from other programs' files."""
POWER_DECIMALS = 24
"""Of powers in W: static power of a small memory is some 1e-7 W."""
"""Decimals of an energy, so that a factor of 10**6 makes every energy an integer."""

LIMIT = 10**15
"""Numbers of this size or more are taken for mistakes."""

BYTES = {"B": 1, "kB": 2**10, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20, "GB": 2**30, "GiB": 2**30}
"""Bytes of a unit of sizes."""
_DECIMAL = r"(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})"
_QUANTITY = re.compile(rf"({_DECIMAL}) *([A-Za-z][A-Za-z/]*)")
_NUMBER = re.compile(_DECIMAL)
_POWER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxstring, _SHOWN.maxother = 2, 40, 40


@dataclass(frozen=True, slots=True)
class Size:
    """A capacity as written: so many bytes, or so many elements."""

    amount: Fraction
    in_bytes: bool

    def elements(self, element_bits: int) -> int:
        """Elements of ``element_bits`` bits; raises ``ValueError`` where that is not a whole number."""
        count = self.amount * 8 / element_bits if self.in_bytes else self.amount
        if count.denominator != 1:
            raise ValueError(f"expected a whole number of {element_bits}-bit elements, got {exact(count)}")
        return count.numerator


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A rate as written: bytes or elements per cycle, or 10**9 bytes per second."""

    amount: Fraction
    unit: str

    def elements_per_cycle(self, element_bits: int, clock_mhz: Fraction) -> Fraction:
        """Elements of ``element_bits`` bits per cycle of a clock of ``clock_mhz`` MHz."""
        if self.unit == "elements/cycle":
            return self.amount
        per_cycle = self.amount if self.unit == "B/cycle" else self.amount * 1000 / clock_mhz
        return per_cycle * 8 / element_bits


def shown(value: object) -> str:
    """The value in one short line, for error messages."""
    return f"{value}" if isinstance(value, Decimal) else " ".join(_SHOWN.repr(value).split())


def exact(value: Fraction) -> str:
    """Shortest exact text: ``13.5`` where the decimals end, otherwise a fraction such as ``16/3``."""
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = abs((value * 10**digits).numerator)
    return f"{'-' if value < 0 else ''}{scaled // 10**digits}.{scaled % 10**digits:0{digits}d}"


def parse_size(value: object) -> Size:
    """``512 B``, ``128 kB``, ``1 MB`` (powers of 1024) or ``24 elements``."""
    expected = "expected a size above 0 with its unit, such as 512 B, 128 kB, 1 MB or 24 elements"
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] not in {*BYTES, "element", "elements"} or Fraction(match[1]) == 0:
        raise ValueError(f"{expected}, got {shown(value)}")
    if match[2] in BYTES:
        return Size(Fraction(match[1]) * BYTES[match[2]], in_bytes=True)
    return Size(Fraction(match[1]), in_bytes=False)


def parse_bandwidth(value: object) -> Bandwidth:
    """``16 B/cycle``, ``8 elements/cycle`` or ``25.6 GB/s`` (10**9 bytes per second)."""
    expected = "expected a bandwidth above 0 with its unit, such as 16 B/cycle, 8 elements/cycle or 25.6 GB/s"
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    units = {"B/cycle": "B/cycle", "elements/cycle": "elements/cycle", "element/cycle": "elements/cycle"}
    unit = {**units, "bytes/cycle": "B/cycle", "GB/s": "GB/s"}.get(match[2]) if match else None
    if match is None or unit is None or Fraction(match[1]) == 0:
        raise ValueError(f"{expected}, got {shown(value)}")
    return Bandwidth(Fraction(match[1]), unit)


def parse_number(value: object, expected: str = "a number", decimals: int = MAX_DECIMALS) -> Fraction:
    """A number of at least 0 with at most so many decimals, exactly."""
    number: Decimal | None = None
    if isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
        number = Decimal(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = Decimal(value.strip())
    if number is None or not number.is_finite() or number < 0 or number >= LIMIT:
        raise ValueError(f"expected {expected} of at least 0, got {shown(value)}")
    number = number.normalize()
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > decimals:
        raise ValueError(f"expected {expected} with at most {decimals} decimals, got {shown(value)}")
    return Fraction(number)


def parse_energy(value: object) -> Fraction:
    """An energy in pJ, with or without the unit."""
    text = value.removesuffix("pJ").strip() if isinstance(value, str) else value
    return parse_number(text, "an energy in pJ")


def parse_power(value: object) -> Fraction:
    """A power in W, with or without the unit, such as ``8.85e-6 W``."""
    text = value.removesuffix("W").strip() if isinstance(value, str) else value
    if isinstance(text, str) and _POWER.fullmatch(text):
        text = Decimal(text)
    return parse_number(text, "a power in W", POWER_DECIMALS)


def parse_positive(value: object) -> Fraction:
    """A number above 0, such as a clock in MHz."""
    number = parse_number(value, "a number")
    if number == 0:
        raise ValueError("expected a number above 0, got 0")
    return number


def parse_count(value: object) -> int:
    """A whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < LIMIT:
        raise ValueError(f"expected a whole number of at least 1, got {shown(value)}")
    return value


def parse_name(value: object) -> str:
    """A name: a letter, then letters, digits, ``_``, ``.`` and ``-``; at most 40 characters."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"expected a name of letters, digits, '_', '.' and '-', got {shown(value)}")
    return value


def parse_text(value: object) -> str:
    """Any text, its white space joined."""
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {shown(value)}")
    return " ".join(value.split())


def parse_flag(value: object) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value
