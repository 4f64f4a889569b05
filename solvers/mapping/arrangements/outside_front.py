"""What is spent outside and how long first fills of near levels take, both together.

Near levels that hold large tiles save energy and take long to be filled first, which nothing hides.  So the
inside of a machine meets one of the points of a front, and not the least energy with the least cycles.
"""

from __future__ import annotations

import math

import numpy as np

from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.compiled.cuts import Cut
from tilewright.solvers.mapping.tree.goals import BAND

_POINTS = 512  # cycles at which the energy is told from which on nothing is wanted
_LEAST = 0.01  # of the cycles at least, over which these are spread
_ROUNDING = 1e-9  # relative; far above that of the few operations on each number


class OutsideFront:
    """What mappings of interest spend outside at least, and their first fills of near levels.

    Parameters
    ----------
    energy : spent outside (scaled), shape (points,)
    fills : cycles of first fills and last drains, shape (points,)
    powers : of energy and cycles in the key, none of them 0
    """

    def __init__(self, energy: Floats, fills: Floats, powers: tuple[int, int]) -> None:
        self._energy, self._fills, self._powers = energy * (1 - BAND), fills, powers
        self._known: tuple[tuple[float, ...], tuple[Floats, Floats]] | None = None

    def cut(self, cut: Cut, inside: float, elsewhere: float, busy: float) -> Cut:
        """What of the inside may belong to a key that is wanted, whatever is outside.

        Parameters
        ----------
        cut : wanted keys of the whole (scaled)
        inside : energy (scaled) spent inside at least
        elsewhere : energy (scaled) spent outside that the counts of the inside have already
        busy : cycles of the inside at least, without first fills of near levels
        """
        if math.isinf(cut.below):
            return cut
        if self._known is None or self._known[0] != (cut.below, inside, elsewhere, busy):
            steps = self._staircase(cut.below, inside, elsewhere, busy)
            self._known = (cut.below, inside, elsewhere, busy), steps
        energy, cycles = self._known[1]
        return cut._replace(front_energy=energy, front_cycles=cycles)

    def least_keys(self, energy: Floats, cycles: Floats) -> Floats:
        """Lower bounds of keys (scaled) of decisions inside.

        Parameters
        ----------
        energy : spent inside (scaled), shape (decisions,)
        cycles : without first fills of near levels, shape (decisions,)
        """
        a, b = self._powers
        least = np.full(len(energy), np.inf)
        for outside, fills in zip(self._energy, self._fills, strict=True):
            np.minimum(least, (energy + outside) ** a * (cycles + fills) ** b, out=least)
        return least * (1 - BAND)

    def _staircase(
        self, below: float, inside: float, elsewhere: float, busy: float
    ) -> tuple[Floats, Floats]:
        """Energies from which on nothing inside is wanted, falling, at cycles that increase."""
        a, b = self._powers
        first = max(busy, 1.0)
        last = (below / max(inside + float(self._energy.min()), 1.0) ** a) ** (1 / b)
        cycles = np.geomspace(first, max(last, first * (1 + _LEAST)), _POINTS)
        whole = (below / (cycles[:, None] + self._fills) ** b) ** (1 / a)
        energy = (whole - self._energy).max(axis=1)
        return energy + np.abs(energy) * _ROUNDING + elsewhere * (1 + _ROUNDING), cycles
