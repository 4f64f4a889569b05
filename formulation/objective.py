"""What to minimise: a product of powers of energy and delay."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from tilewright.workloads.errors import InputError

_NAMED = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1), "ed2p": (1, 2)}
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_POWER = re.compile(rf"E(?:\^(?P<a>{_NUMBER}))?(?:[·*]?D(?:\^(?P<b>{_NUMBER}))?)?|D(?:\^(?P<c>{_NUMBER}))?")
_LARGEST_POWER = 18
"""In the key, so that its floats stay finite on layers of any size that is met."""


@dataclass(frozen=True, slots=True)
class Objective:
    """``energy ** energy_power * cycles ** delay_power``, energy in pJ.

    Solvers minimise the *key*: the same product with both powers multiplied by ``root`` so that they are
    integers.  Where they already are, key and value coincide (up to the energy's scale).
    """

    name: str
    energy_power: Fraction
    delay_power: Fraction

    @property
    def root(self) -> int:
        return math.lcm(self.energy_power.denominator, self.delay_power.denominator)

    @property
    def key_powers(self) -> tuple[int, int]:
        """Integer powers of energy and cycles in the key."""
        return int(self.energy_power * self.root), int(self.delay_power * self.root)

    def key(self, energy: Fraction, cycles: int) -> Fraction:
        """The exact value that solvers compare."""
        a, b = self.key_powers
        result: Fraction = energy**a * cycles**b
        return result

    def value(self, key: Fraction) -> float | int:
        """What is shown: an integer where it is one, a float otherwise."""
        if self.root == 1:
            return int(key) if key.denominator == 1 else float(key)
        return float(float(key) ** (1 / self.root))

    def __str__(self) -> str:
        return self.name


def parse_objective(text: str) -> Objective:
    """An objective by name (``energy``, ``cycles``, ``edp``, ``ed2p``) or as ``E^a*D^b``.

    Raises ``InputError`` for anything else, and where both powers are zero.
    """
    if text.lower() in _NAMED:
        a, b = _NAMED[text.lower()]
        return Objective(text.lower(), Fraction(a), Fraction(b))
    match = _POWER.fullmatch(text)
    if match is None:
        raise InputError(
            "--objective", None, f"unknown objective {text!r}, expected energy, cycles, edp, ed2p or E^a*D^b"
        )
    if text.startswith("D"):
        powers = Fraction(0), Fraction(match["c"] or 1)
    else:
        powers = Fraction(match["a"] or 1), Fraction(match["b"] or 1) if "D" in text else Fraction(0)
    if not any(powers) or max(powers) > 9:
        raise InputError("--objective", None, f"powers in {text!r} must be at most 9 and not both zero")
    objective = Objective(text, *powers)
    if max(objective.key_powers) > _LARGEST_POWER:
        key = " and ".join(map(str, objective.key_powers))
        raise InputError(
            "--objective",
            None,
            f"powers in {text!r} are too fine: as integers over one denominator, {key}, "
            f"expected at most {_LARGEST_POWER}",
        )
    return objective
