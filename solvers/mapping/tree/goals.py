"""What a search of the tree looks for: which parts stay open, and what is done with complete decisions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.stopping import BoundReaches
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.mapping.compiled.cuts import BAND, EVERYTHING, Cut, cut_at, cut_below, wanted_by

if TYPE_CHECKING:
    from tilewright.formulation.mapping.problem import LayerProblem
    from tilewright.solvers.mapping.tree.nodes import Leaves

__all__ = ["BAND", "Below", "Goal", "LeastEnergy", "Minimum", "goal_of"]


class Goal(Protocol):
    """What a search looks for: it decides which parts of the space stay open, and takes what they hold.

    ``both`` states that it compares energy and cycles even where the objective has only one of them, ``once``
    that of mappings that only change places of groups of tiles one is enough.
    """

    both: bool = False
    once: bool = False

    def cut(self) -> Cut:
        """What may hold something new at present, by its lower bounds."""

    def take(self, leaves: Leaves) -> None:
        """Look at complete decisions."""

    def wanted(self, energy: Floats, cycles: Floats, keys: Floats) -> Bools:
        """Parts that may hold something new, by lower bounds of energy (scaled), cycles and their key."""
        return wanted_by(self.cut(), energy, cycles, keys)


class Minimum(Goal):
    """One mapping of the least objective key."""

    once = True

    def __init__(self, search: LayerSearch, source: str) -> None:
        self._search = search
        self._source = source
        self._goal: Fraction | None = None
        self._cut = EVERYTHING

    def cut(self) -> Cut:
        """Parts whose bound is below what the incumbent leaves to gain."""
        goal = goal_of(self._search)
        if goal is not self._goal:
            problem = self._search.problem
            self._goal, self._cut = goal, EVERYTHING
            if goal is not None:
                self._cut = cut_below(goal * problem.key_scale, problem.objective.key_powers)
        return self._cut

    def take(self, leaves: Leaves) -> None:
        """Offer the best of the complete decisions, unless something as good is known."""
        best = slice(int(np.argmin(leaves.keys)), None)
        if self.wanted(leaves.energy[best][:1], leaves.cycles[best][:1], leaves.keys[best][:1]).any():
            self._search.confirm(leaves.mapping(best.start), self._source)


class Below(Goal):
    """What another goal wants, as far as it is below a key (scaled)."""

    def __init__(self, goal: Goal, cutoff: float) -> None:
        self.both, self.once = goal.both, goal.once
        self._goal, self._cutoff = goal, cutoff

    def cut(self) -> Cut:
        """Parts whose bound is below the key that the other goal wants."""
        cut = self._goal.cut()
        return cut._replace(below=min(cut.below, self._cutoff))

    def take(self, leaves: Leaves) -> None:
        """Hand complete decisions on."""
        self._goal.take(leaves)


class LeastEnergy(Goal):
    """The least value of what is read as energy, or one that is little more.

    Parameters
    ----------
    best : known or enough
    slack : by how much the value found may be more than the least, relative

    Attributes
    ----------
    tiles : tile sizes of the best decisions found; none before any are
    part : the problem that has them
    """

    once = True

    def __init__(self, best: float = math.inf, slack: float = 0.0) -> None:
        self.best = best
        self.part: LayerProblem | None = None
        self.tiles: dict[Variable, int] = {}
        self._share = 1 - slack

    @property
    def enough(self) -> float:
        """From which value on nothing is of interest."""
        return self.best * self._share

    def cut(self) -> Cut:
        """Parts whose bound is below the least value found, by the slack at least."""
        return cut_at(below=self.enough)

    def take(self, leaves: Leaves) -> None:
        """Note the least value."""
        cheapest = int(np.argmin(leaves.keys))
        if leaves.keys[cheapest] < self.best:
            self.best, self.tiles = float(leaves.keys[cheapest]), leaves.tiles(cheapest)
            self.part = leaves.problem


def goal_of(search: LayerSearch) -> Fraction | None:
    """The key from which on nothing is of interest; ``None`` while everything is."""
    goals = [part.key for part in search.limits.until.parts if isinstance(part, BoundReaches)]
    if search.key is not None:
        gap = search.limits.gap
        goals.append(search.key * (1 - Fraction(gap)) if gap else search.key)
    return min(goals, default=None)
