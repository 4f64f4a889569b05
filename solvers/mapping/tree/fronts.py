"""The front of energy and cycles of decisions that cost less than a key."""

from __future__ import annotations

import math

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.compiled.cuts import Cut, cut_at
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves


class FrontBelow(Goal):
    """What costs less than a key (scaled), and less than anything found in energy or in cycles.

    Attributes
    ----------
    energy, cycles : of what was found, cycles increasing and energy (scaled) falling, shape (points,)
    least : its least key (scaled); infinite before anything is found
    tiles : tile sizes of the decisions with that key
    """

    once = True

    def __init__(self, below: float) -> None:
        self._below = below
        self.energy: Floats = np.zeros(0)
        self.cycles: Floats = np.zeros(0)
        self.least, self.tiles = math.inf, dict[Variable, int]()

    def cut(self) -> Cut:
        """Parts that may be cheaper, and better than all found in one respect."""
        return cut_at(self._below)._replace(front_energy=self.energy, front_cycles=self.cycles)

    def take(self, leaves: Leaves) -> None:
        """Add what is not worse than any other."""
        kept = leaves.keys < self._below
        energy = np.concatenate([self.energy, leaves.energy[kept]])
        cycles = np.concatenate([self.cycles, leaves.cycles[kept]])
        cheapest = int(np.argmin(leaves.keys))
        if leaves.keys[cheapest] < self.least:
            self.least, self.tiles = float(leaves.keys[cheapest]), leaves.tiles(cheapest)
        order = np.lexsort((energy, cycles))
        energy, cycles = energy[order], cycles[order]
        before = np.minimum.accumulate(np.concatenate([[math.inf], energy[:-1]]))
        self.energy, self.cycles = energy[energy < before], cycles[energy < before]
