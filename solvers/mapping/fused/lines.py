"""Products of powers of energy and cycles, proven by lines ``energy + price * cycles >= least``.

What groups, shared stores and a cover take at some price of a cycle adds up, so the least of that sum is
found and proven as the least energy is.  Every such line bounds the energy and cycles of all answers.  The
objective has its least value over what lies above all lines at one of their corners, since its level sets are
curved towards the origin; and its least value over all answers is at a corner of their convex hull.  So lines
at ever more prices close the gap between the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.objective import Objective

DIGITS = 3
"""Significant ones of a price at first, so that energies stay short."""
MANY = 16
"""Lines, after which prices are no longer rounded."""


Point = tuple[Fraction, int]
"""Energy and cycles."""


@dataclass(frozen=True)
class Line:
    """What is known at one price of a cycle.

    Parameters
    ----------
    price : pJ per cycle
    least : pJ; no answer's energy and priced cycles together are less
    point : energy and cycles of the best answer at this price; ``None`` where none is known
    """

    price: Fraction
    least: Fraction
    point: Point | None = None

    def at(self, cycles: Fraction) -> Fraction:
        """Energy at so many cycles."""
        return self.least - self.price * cycles

    @property
    def is_tight(self) -> bool:
        """Whether its answer lies on it."""
        return self.point is not None and self.point[0] + self.price * self.point[1] == self.least


@dataclass(frozen=True)
class Corner:
    """Where two lines meet; the fewest cycles are a line of their own, ``steep`` is ``None`` there."""

    energy: Fraction
    cycles: Fraction
    steep: Line | None
    flat: Line


def corners(lines: Sequence[Line], fewest: Fraction) -> list[Corner]:
    """Corners of what lies above all lines, by rising cycles.

    Parameters
    ----------
    lines : at different prices; that no energy is negative is the line at no price where none of them is
    fewest : cycles of any answer
    """
    if all(line.price for line in lines):  # else energies could fall below 0 behind the last corner
        lines = [*lines, Line(Fraction(0), Fraction(0))]
    cycles = fewest
    flat = max(lines, key=lambda line: (line.at(fewest), -line.price))
    met = [Corner(flat.at(fewest), fewest, None, flat)]
    while True:
        flatter = [line for line in lines if line.price < flat.price]
        if not flatter:
            return met
        steep = flat
        meeting = {line.price: (steep.least - line.least) / (steep.price - line.price) for line in flatter}
        flat = min(flatter, key=lambda line: (meeting[line.price], line.price))
        cycles = max(cycles, meeting[flat.price])
        met.append(Corner(flat.at(cycles), cycles, steep, flat))


def least_key(objective: Objective, lines: Sequence[Line], fewest: Fraction) -> Fraction:
    """A bound on the objective's key of all answers.

    Parameters
    ----------
    objective : of total energy and total cycles
    lines, fewest : as for :func:`corners`
    """
    return min(key_at(objective, corner) for corner in corners(lines, fewest))


def key_at(objective: Objective, corner: Corner) -> Fraction:
    """The objective's key at a corner."""
    a, b = objective.key_powers
    key: Fraction = max(corner.energy, Fraction(0)) ** a * corner.cycles**b
    return key


def next_price(
    objective: Objective, lines: Sequence[Line], fewest: Fraction, best: Fraction | None
) -> Fraction | None:
    """At which price a line would do most for the proof; ``None`` where nothing is left to prove.

    Parameters
    ----------
    objective, lines, fewest : as for :func:`least_key`
    best : the least key known
    """
    worst = sorted(corners(lines, fewest), key=lambda corner: key_at(objective, corner))
    for corner in worst:
        if best is not None and key_at(objective, corner) >= best:
            return None
        price = _between(objective, corner, exact=len(lines) > MANY)
        if price is not None and all(line.price != price for line in lines):
            return price
    return None


def tangent(objective: Objective, energy: Fraction, cycles: Fraction) -> Fraction:
    """The price at which the objective does not change along a line through a point."""
    a, b = objective.key_powers
    return b * energy / (a * cycles)


def _between(objective: Objective, corner: Corner, *, exact: bool) -> Fraction | None:
    """A price between those of a corner's lines; ``None`` where both are proven and meet in an answer."""
    low = corner.flat.price
    high = None if corner.steep is None else corner.steep.price
    wish = tangent(objective, corner.energy, corner.cycles)
    if corner.steep is not None and corner.steep.point is not None and corner.flat.point is not None:
        (energy, cycles), (other_energy, other_cycles) = corner.steep.point, corner.flat.point
        if cycles < other_cycles and energy > other_energy:
            # Whether any answer lies below the line through the two is what matters here.
            wish = (energy - other_energy) / (other_cycles - cycles)
        elif corner.steep.is_tight and corner.flat.is_tight:
            return None
    if wish <= low or (high is not None and wish >= high):
        wish = 2 * low + 1 if high is None else (low + high) / 2
    return wish if exact else _short(wish, low, high)


def _short(price: Fraction, low: Fraction, high: Fraction | None) -> Fraction:
    """A price nearby of few digits, between two others."""
    digits = DIGITS
    while True:
        step = Fraction(10) ** (len(str(int(price))) - digits) if price >= 1 else Fraction(1, 10**digits)
        short = round(price / step) * step
        if short > low and (high is None or short < high):
            return short
        digits += 1
