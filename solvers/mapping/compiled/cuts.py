"""What a goal wants of partial decisions, as numbers that compiled searches read.

Keys are compared in floating point where that is exact.  Products of energy and cycles near the goal's are
compared in whole numbers, of any length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.foundation.compiled import compiled

BAND = 1e-12
"""Relative: products of two exact floats agree with the exact product well within it."""

_DIGIT = 30  # bits of the digits in which long numbers are written
_EXACT = float(EXACT_LIMIT)


class Cut(NamedTuple):
    """Which lower bounds may still belong to something that is wanted.

    Parameters
    ----------
    below : keys are less than this; infinite where any will do
    most : and no more than this
    near : of keys above this, energy and cycles are compared exactly
    digits : of the least whole key that is not wanted, the lowest ones first; read near the goal
    powers : of energy and cycles in the key
    front_energy, front_cycles : points that are known, cycles increasing and energy falling; what is not
        better than one of them in either is not wanted
    """

    below: float
    most: float
    near: float
    digits: Int64s
    powers: Int64s
    front_energy: Floats
    front_cycles: Floats


_NONE = np.zeros(0)


def cut_at(below: float = math.inf, most: float = math.inf) -> Cut:
    """Keys less than one number, and no more than another one."""
    return Cut(below, most, math.inf, np.zeros(0, np.int64), np.zeros(2, np.int64), _NONE, _NONE)


EVERYTHING = cut_at()
NOTHING = cut_at(-math.inf)


def cut_below(goal: Fraction, powers: tuple[int, int]) -> Cut:
    """Keys less than a goal (scaled), compared exactly.

    Parameters
    ----------
    powers : of energy and cycles in the key
    """
    target = float(goal)
    if sum(powers) == 1 and target < EXACT_LIMIT:
        return cut_at(below=target) if goal == int(target) else cut_at(most=target)
    return cut_at(target * (1 + BAND))._replace(
        near=target * (1 - BAND),
        digits=_digits(max(0, math.ceil(goal))),
        powers=np.array(powers, dtype=np.int64),
    )


def cut_by_front(energy: Sequence[int], cycles: Sequence[int]) -> Cut:
    """What no known point is at least as good as in both respects; cycles increase, energy falls."""
    return EVERYTHING._replace(
        front_energy=np.array(energy, dtype=np.float64), front_cycles=np.array(cycles, dtype=np.float64)
    )


def _digits(number: int) -> Int64s:
    digits = []
    while number:
        digits.append(number & ((1 << _DIGIT) - 1))
        number >>= _DIGIT
    return np.array(digits, dtype=np.int64)


@compiled(ieee=True)
def _is_product_below(cut: Cut, energy: float, cycles: float) -> bool:  # pragma: no cover
    """Whether ``energy**a * cycles**b`` is less than the number with these digits; exact below 2^53."""
    count = len(cut.digits)
    # Two digits more than the goal has: what reaches them is no longer below it.
    product = np.zeros(count + 2, dtype=np.int64)
    product[0] = 1
    mask = (1 << _DIGIT) - 1
    for which in range(2):
        factor = int(energy) if which == 0 else int(cycles)
        low, high = factor & mask, factor >> _DIGIT
        for _ in range(cut.powers[which]):
            carry, before = 0, 0
            for k in range(count + 2):
                digit = product[k]
                carry += digit * low + before * high
                product[k] = carry & mask
                carry >>= _DIGIT
                before = digit
            if product[count] > 0 or product[count + 1] > 0 or carry > 0:
                return False
    for k in range(count - 1, -1, -1):
        if product[k] != cut.digits[k]:
            return bool(product[k] < cut.digits[k])
    return False


@compiled(ieee=True)
def is_wanted(cut: Cut, energy: float, cycles: float, key: float) -> bool:  # pragma: no cover
    """Whether lower bounds of energy (scaled), cycles and their key leave something to want.

    Parameters
    ----------
    cut : what is wanted
    energy, cycles, key : of one part
    """
    # Infinite keys are wanted where any are; so is what is not a number, about which nothing is known.
    if (key >= cut.below and cut.below < np.inf) or key > cut.most:
        return False
    if key > cut.near and energy < _EXACT and not _is_product_below(cut, energy, cycles):
        return False
    count = len(cut.front_cycles)
    if count == 0:
        return True
    # The last point of no more cycles has the least energy of all of those.
    place = np.searchsorted(cut.front_cycles, cycles)
    if place == count or cut.front_cycles[place] > cycles:
        place -= 1
    return bool(place < 0 or energy < cut.front_energy[place])


@compiled(ieee=True)
def mark_wanted(
    cut: Cut, energy: Floats, cycles: Floats, keys: Floats, marks: Bools
) -> None:  # pragma: no cover
    """Mark what is wanted.

    Parameters
    ----------
    cut : what is wanted
    energy, cycles, keys : of each part, shape (parts,)
    marks : to be filled, shape (parts,)
    """
    for j in range(len(keys)):
        marks[j] = is_wanted(cut, energy[j], cycles[j], keys[j])


def wanted_by(cut: Cut, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
    """Which parts may hold something that is wanted, by lower bounds; all shape (parts,).

    Parameters
    ----------
    energy, cycles : lower bounds of each part (energy in scaled units)
    keys : ``energy**a * cycles**b`` in floating point
    """
    marks = np.empty(len(keys), dtype=np.bool_)
    mark_wanted(
        cut,
        np.asarray(energy, dtype=np.float64),
        np.asarray(cycles, dtype=np.float64),
        np.asarray(keys, dtype=np.float64),
        marks,
    )
    return marks
