"""What to minimise over several layers: an objective of their totals, or the sum of their own objectives.

The ``edp`` of a network is its total energy times its total cycles.  ``sum-edp`` is the sum of its layers'
EDPs, which is less.  Of energy or cycles alone both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.objective import Objective, parse_objective
from tilewright.foundation.errors import InputError

SUM = "sum-"
"""Before the name of an objective: the sum of the layers' own."""
_BITS = 96
"""Significant ones of a bound that is rounded."""


@dataclass(frozen=True, slots=True)
class NetworkObjective:
    """What to minimise over the layers of a network.

    Parameters
    ----------
    layer : the objective of a layer alone
    summed : whether the layers' objectives are added up; else it is of total energy and total cycles
    """

    layer: Objective
    summed: bool = False

    def adds_up(self, instances: int) -> bool:
        """Whether the value of so many layers is the sum of their own."""
        return self.summed or not self.ambiguous(instances)

    def value(self, parts: Iterable[tuple[int, Fraction, int]]) -> Fraction:
        """Key of some layers.

        Parameters
        ----------
        parts : how often a layer counts, its energy in pJ, and its cycles
        """
        parts = [*parts]
        if self.adds_up(sum(count for count, _, _ in parts)):
            return self.total((count, self.layer.key(energy, cycles)) for count, energy, cycles in parts)
        energy = sum((count * energy for count, energy, _ in parts), Fraction(0))
        return self.layer.key(energy, sum(count * cycles for count, _, cycles in parts))

    def bound(self, parts: Iterable[tuple[int, Fraction]]) -> Fraction:
        """Lower bound of the key of some layers, from bounds of their own keys.

        By Hölder's inequality ``(sum E)^a (sum D)^b`` is at least ``(sum (E^a D^b)^(1/(a + b)))^(a + b)``.
        Ratios of bounds that are powers have exact roots; other roots are rounded down.

        Parameters
        ----------
        parts : how often a layer counts, and a lower bound of its key
        """
        parts = [(count, bound) for count, bound in parts if count]
        least = min((bound for _, bound in parts if bound), default=None)
        if least is None or self.adds_up(sum(count for count, _ in parts)):
            return self.total(parts)
        roots = [(count, *_root(bound / least, self._power)) for count, bound in parts]
        bound = least * sum((count * root for count, root, _ in roots), Fraction(0)) ** self._power
        return bound if all(exact for _, _, exact in roots) else _rounded(bound)

    @staticmethod
    def total(keys: Iterable[tuple[int, Fraction]]) -> Fraction:
        """The sum of keys, each so often."""
        keys = [*keys]
        unit = math.lcm(*(key.denominator for _, key in keys))  # once, not at every addition
        return Fraction(sum(count * key.numerator * (unit // key.denominator) for count, key in keys), unit)

    def ambiguous(self, instances: int) -> bool:
        """Whether the objective of so many layers' totals and the sum of their own are two figures."""
        return instances > 1 and self._power > 1

    def figure(self, instances: int) -> str:
        """What the value of so many layers is called."""
        return f"sum of layer {self.layer}" if self.summed and self.ambiguous(instances) else str(self.layer)

    @property
    def _power(self) -> int:
        return sum(self.layer.key_powers)

    def __str__(self) -> str:
        return f"{SUM}{self.layer}" if self.summed and self._power > 1 else str(self.layer)


def parse_network_objective(text: str) -> NetworkObjective:
    """An objective as `parse_objective` takes it, or ``sum-`` before one; raises ``InputError``."""
    name = text.removeprefix(SUM)
    try:
        return NetworkObjective(parse_objective(name), summed=name != text)
    except InputError as error:
        message = error.message.replace("edp, ed2p or E^a*D^b", "edp, ed2p, E^a*D^b or sum-edp")
        raise InputError("--objective", None, message) from None


def _root(number: Fraction, power: int) -> tuple[Fraction, bool]:
    """A root, rounded down in the 64th binary place where it is not exact, and whether it is."""
    above, below = _whole_root(number.numerator, power), _whole_root(number.denominator, power)
    if above**power == number.numerator and below**power == number.denominator:
        return Fraction(above, below), True
    return Fraction(
        _whole_root((number.numerator << 64 * power) // number.denominator, power), 1 << 64
    ), False


def _whole_root(number: int, power: int) -> int:
    """The largest integer whose power is at most a number, by Newton's iteration from above."""
    if power == 2 or number < 2:
        return math.isqrt(number) if power == 2 else number
    root = 1 << -(-number.bit_length() // power)
    while (better := ((power - 1) * root + number // root ** (power - 1)) // power) < root:
        root = better
    return root


def _rounded(bound: Fraction) -> Fraction:
    """A lower bound that is short enough to be written down."""
    places = max(0, _BITS - int(bound).bit_length())
    return Fraction((bound.numerator << places) // bound.denominator, 1 << places)
