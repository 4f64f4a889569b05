"""Quantities as people read them: four digits, SI prefixes, units."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.objective import Objective

Number = int | float | Fraction

_PREFIXES = (
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
)
_PICO = 1e-12


def si_text(value: Number, unit: str = "", like: Number | None = None) -> str:
    """``1.234 mJ``: four significant digits with an SI prefix; small integers without a point.

    The prefix is that of ``like``, where one is given: numbers below each other then have one unit.
    """
    number = float(value)
    if number == 0:
        return f"0 {unit}".rstrip()
    if not unit and isinstance(value, int) and abs(value) < 1000:
        return str(value)
    size = abs(number if not like else float(like)) * (1 + 5e-5)  # so that 999.96 becomes 1.000 k
    factor, prefix = next((pair for pair in _PREFIXES if size >= pair[0]), _PREFIXES[-1])
    shown = number / factor
    digits = _four_digits(shown)
    if like and not 1 <= abs(shown) < 10_000:
        digits = f"{shown:.4g}" if abs(shown) < 1 else f"{shown:,.0f}"
    return f"{digits} {prefix}{unit}".rstrip()


def _four_digits(number: float) -> str:
    if abs(number) >= 10_000:
        return f"{number:.3e}"
    whole = len(str(int(abs(number) * (1 + 5e-5))))
    return f"{number:.{max(0, 4 - whole)}f}"


def energy_text(picojoules: Number, like: Number | None = None) -> str:
    """Energy with a prefix, such as ``12.34 µJ``; with that of ``like`` where one is given."""
    return si_text(float(picojoules) * _PICO, "J", None if like is None else float(like) * _PICO)


def count_text(count: int) -> str:
    """A whole number with thousands separators."""
    return f"{count:,}"


def bytes_text(elements: int, element_bits: int) -> str:
    """Size of so many elements in B, kB (1024 B), MB or GB."""
    size = elements * element_bits / 8
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            break
        size /= 1024
    return f"{size:.4g} {unit}"


def percent_text(share: Number, digits: int = 2) -> str:
    """A share in percent; a positive one never reads as zero."""
    number = 100 * float(share)
    least = 10**-digits
    if 0 < number < least:
        return f"<{least:.{digits}f} %"
    return f"{number:.{digits}f} %"


def gap_text(gap: float | None) -> str:
    """A relative gap: ``0 %`` only where value and bound are equal."""
    if gap is None:
        return "-"
    return "0 %" if gap == 0 else percent_text(gap)


def seconds_text(seconds: float) -> str:
    """A duration: ``0.31 s``, ``12.3 s``, ``4 min 05 s``, ``2 h 03 min``."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def objective_text(objective: Objective, value: Number, like: Number | None = None) -> str:
    """A value of the objective with its unit; with the prefix of ``like`` where one is given."""
    powers = objective.key_powers if objective.root == 1 else (0, 0)
    if powers == (1, 0):
        return energy_text(value, like)
    if powers == (0, 1):
        return f"{count_text(int(value))} cycles"
    if powers == (1, 1):
        return si_text(float(value) * _PICO, "J·cycle", None if like is None else float(like) * _PICO)
    return f"{float(value):.4g}"
