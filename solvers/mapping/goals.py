"""What a search of the tree looks for: which parts stay open, and what is done with complete decisions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.stopping import BoundReaches
from tilewright.foundation.arrays import Bools, Floats

if TYPE_CHECKING:
    from tilewright.solvers.mapping.nodes import Leaves

BAND = 1e-12
"""Relative: products of two exact floats agree with the exact product well within it."""


class Goal(Protocol):
    """What a search looks for: it decides which parts of the space stay open, and takes what they hold.

    ``both`` states that it compares energy and cycles even where the objective has only one of them.
    """

    both: bool

    def wanted(self, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        """Parts that may hold something new, by lower bounds of energy (scaled), cycles and their key."""

    def take(self, leaves: Leaves) -> None:
        """Look at complete decisions."""


def below(goal: Fraction, powers: tuple[int, int], energy: Floats, cycles: Floats, keys: Floats) -> Bools:
    """Which keys are below ``goal`` (scaled); products of two floats near it are compared exactly.

    Parameters
    ----------
    goal : the key to stay below, in scaled units
    powers : of energy and cycles in the key
    energy, cycles : lower bounds of each part (energy in scaled units), shape (parts,)
    keys : ``energy**a * cycles**b`` in floating point, shape (parts,)
    """
    target = float(goal)
    if sum(powers) == 1 and target < EXACT_LIMIT:
        return keys < target if goal == int(target) else keys <= target
    keep = keys < target * (1 + BAND)
    if energy.max(initial=0) < EXACT_LIMIT:
        a, b = powers
        for index in np.flatnonzero(keep & (keys > target * (1 - BAND))):
            keep[index] = int(energy[index]) ** a * int(cycles[index]) ** b < goal
    return keep


class Minimum:
    """One mapping of the least objective key."""

    both = False

    def __init__(self, search: LayerSearch, source: str) -> None:
        self._search = search
        self._source = source
        self._powers = search.problem.objective.key_powers
        self._goal: Fraction | None = None
        self._scaled = Fraction(0)  # the goal in the scale of the keys that are read

    def wanted(self, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        """Parts whose bound is below what the incumbent leaves to gain; products compared exactly."""
        goal = goal_of(self._search)
        if goal is None:
            return np.ones(len(keys), dtype=bool)
        if goal is not self._goal:
            self._goal, self._scaled = goal, goal * self._search.problem.key_scale
        return below(self._scaled, self._powers, energy, cycles, keys)

    def take(self, leaves: Leaves) -> None:
        """Offer the best of the complete decisions, unless something as good is known."""
        best = slice(int(np.argmin(leaves.keys)), None)
        if self.wanted(leaves.energy[best][:1], leaves.cycles[best][:1], leaves.keys[best][:1]).any():
            self._search.confirm(leaves.mapping(best.start), self._source)


class Below:
    """What another goal wants, as far as it is below a key (scaled)."""

    def __init__(self, goal: Goal, cutoff: float) -> None:
        self.both = goal.both
        self._goal, self._cutoff = goal, cutoff

    def wanted(self, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        """Parts whose bound is below the key that the other goal wants."""
        return self._goal.wanted(energy, cycles, keys) & (keys < self._cutoff)

    def take(self, leaves: Leaves) -> None:
        """Hand complete decisions on."""
        self._goal.take(leaves)


class LeastEnergy:
    """The least value of what is read as energy, or one that is little more.

    Parameters
    ----------
    best : known or enough
    slack : by how much the value found may be more than the least, relative
    """

    both = False

    def __init__(self, best: float = math.inf, slack: float = 0.0) -> None:
        self.best = best
        self._share = 1 - slack

    @property
    def enough(self) -> float:
        """From which value on nothing is of interest."""
        return self.best * self._share

    def wanted(self, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        """Parts whose bound is below the least value found, by the slack at least."""
        return keys < self.enough

    def take(self, leaves: Leaves) -> None:
        """Note the least value."""
        self.best = min(self.best, float(leaves.keys.min()))


def goal_of(search: LayerSearch) -> Fraction | None:
    """The key from which on nothing is of interest; ``None`` while everything is."""
    goals = [part.key for part in search.limits.until.parts if isinstance(part, BoundReaches)]
    if search.key is not None:
        gap = search.limits.gap
        goals.append(search.key * (1 - Fraction(gap)) if gap else search.key)
    return min(goals, default=None)
