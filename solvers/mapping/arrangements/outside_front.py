"""What is spent outside, and how long first fills of near levels take: both together.

Near levels that hold large tiles save energy and take long to be filled first, which nothing hides.  So the
inside of a machine meets a point of a front, not the least energy with the fewest cycles
(``docs/uneven.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tilewright.formulation.expression import total
from tilewright.formulation.mapping.parts.segment_cycles import FILLS
from tilewright.formulation.mapping.parts.segment_parts import charged
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.arrangements.part_searches import PartSearches
from tilewright.solvers.mapping.compiled.cuts import Cut
from tilewright.solvers.mapping.tree.fronts import FrontBelow
from tilewright.solvers.mapping.tree.goals import BAND

_EFFORT = 1_000_000  # nodes bounded in looking for a front, for each sequence of near points
_POINTS = 512  # numbers of cycles at which it is known from which energy on nothing is wanted
_LEAST = 0.01  # of the fewest cycles, over which these are spread at least
_ROUNDING = 1e-9  # relative; far above that of the few operations on each number


class OutsideFront:
    """What all that may be of interest spends outside, and its first fills of near levels.

    Parameters
    ----------
    energy : spent outside (scaled), shape (points,); one point at least
    fills : cycles of first fills and last drains of near levels, shape (points,)
    powers : of energy and cycles in the key, none of them 0
    inside : energy (scaled) that is spent inside at least
    counted : energy (scaled) spent outside that counts of the inside have already
    busy : cycles without first fills of near levels, at least
    """

    def __init__(
        self,
        energy: Floats,
        fills: Floats,
        powers: tuple[int, int],
        inside: float,
        counted: float,
        busy: float,
    ) -> None:
        self._energy, self._fills, self._powers = energy * (1 - BAND), fills, powers
        self._inside, self._counted, self._busy = inside, counted, max(busy, 1.0)
        self._below = math.inf
        self._front = np.zeros(0), np.zeros(0)

    def cut(self, cut: Cut) -> Cut:
        """What of the inside may belong to a key that is wanted, by its energy and cycles without fills.

        Parameters
        ----------
        cut : wanted keys of the whole (scaled)
        """
        if math.isinf(cut.below):
            return cut
        if cut.below != self._below:
            self._below, self._front = cut.below, self._unwanted(cut.below)
        return cut._replace(front_energy=self._front[0], front_cycles=self._front[1])

    def _unwanted(self, below: float) -> tuple[Floats, Floats]:
        """Energies from which on nothing is wanted, falling, at numbers of cycles that increase."""
        a, b = self._powers
        last = (below / max(self._inside + float(self._energy.min()), 1.0) ** a) ** (1 / b)
        cycles = np.geomspace(self._busy, max(last, self._busy * (1 + _LEAST)), _POINTS)
        most = (below / (cycles[:, None] + self._fills) ** b) ** (1 / a)
        energy = (most - self._energy).max(axis=1)
        return energy + self._counted + (np.abs(energy) + self._counted) * _ROUNDING, cycles


def found_outside(
    searches: PartSearches, parts: Iterable[LayerProblem], below: float, inside: int, busy: int
) -> tuple[Floats, Floats] | None:
    """Energy outside (scaled) and first fills of mappings below a key; ``None`` where that is not all known.

    Every such mapping spends no less than one of them and fills no faster, with any sequence of near points.

    Parameters
    ----------
    parts : outside, of all sequences of near points
    below : key (scaled)
    inside : energy (scaled) that is spent inside at least
    busy : cycles without first fills of near levels, at least
    """
    front = FrontBelow(below)
    for alone in parts:
        cycles = total([busy, alone.statement.details[FILLS]])
        part = replace(alone, statement=replace(alone.statement, cycles=cycles))
        tree = searches.tree(front, charged(part, searches.objective, inside), _EFFORT)
        if tree is None:
            continue
        tree.begin()
        if tree.go_on() is not None:
            return None
    return (front.energy - inside, front.cycles - busy) if len(front.cycles) else None
