"""Machines that take turns in one search over uneven storage, the one with the least bound first.

Where levels may be bypassed, a problem is searched on a machine for every choice of what they store
(:func:`tilewright.formulation.mapping.parts.segment_parts.storages`).  Where single levels bound these
(:mod:`tilewright.solvers.mapping.patterns.pattern_bounds`), a machine is stated when its bound is the least.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING

from tilewright.formulation.mapping.parts.segment_parts import storages
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import storing

if TYPE_CHECKING:
    from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds

_STEP = 0.005  # by which the first cutoff passes the least that anything may cost
_FASTER = 4  # times as far at every further one
_NEAR = 2  # times as far as a cutoff, what is known is searched for itself at once
_STEPS, _APART = (
    (0.08, 0.04),
    0.02,
)  # the same where first fills tell much: one of these more, so far from what is known


@dataclass(slots=True, eq=False)
class Turn:
    """Machines that are searched together, and what is known of them.

    Parameters
    ----------
    machines : the problem on each; nothing may bypass their levels
    least : lower bound of the objective key (scaled) of what has not been searched; infinite where all has
    bounds : of their arrangements, once these are asked for
    """

    machines: Sequence[LayerProblem]
    least: float
    bounds: Sequence[SegmentBounds] | None = None
    _base: float = 0.0
    _passed: float = 0.0  # by how much the last cutoff passed that, relative

    def go_on(self) -> bool:
        """Find more of what parts cost, on the machine of the least bound; whether there was more to find."""
        assert self.bounds is not None
        cheapest = min(self.bounds, key=lambda bounds: bounds.least)
        is_more = cheapest.is_wanted and cheapest.go_on()
        self.least = max(self.least, min(bounds.least for bounds in self.bounds))
        return is_more

    def cutoff(self, goal: Fraction | None, at_once: bool) -> float:
        """The key (scaled) below which they are searched next, infinite for all that is wanted.

        Parameters
        ----------
        goal : key from which on nothing is of interest
        at_once : whether keys tell nothing of what is wanted
        """
        self._base = self._base or self.least
        if at_once or goal is None or not self._base:
            return math.inf
        known = float(goal * self.machines[0].key_scale)
        if self.bounds and all(bounds.fills_count for bounds in self.bounds):
            far = (self._passed + step for step in _STEPS)
            passed = next((own for own in far if self._base * (1 + own) * (1 + _APART) < known), math.inf)
        else:
            passed = _FASTER * self._passed or _STEP
            passed = passed if self._base * (1 + _NEAR * passed) < known else math.inf
        self._passed = passed
        return self._base * (1 + passed)


class Turns:
    """The machines of a problem that are open.

    Parameters
    ----------
    levels : bound its storage patterns, each of which has a machine; ``None`` where all machines are searched
        together
    problem : the whole
    least : lower bound of its objective key (scaled)
    """

    def __init__(self, levels: PatternBounds | None, problem: LayerProblem, least: float) -> None:
        self._levels, self._problem, self._floor = levels, problem, least
        self._scale = float(problem.key_scale)
        self._tick = count()
        self._open: list[tuple[float, int, Turn]] = []
        if levels is None:
            self.put(Turn([*storages(problem)], least))

    @property
    def least(self) -> float:
        """Lower bound of the objective key (scaled) on all machines whose turn it is not."""
        stated = self._open[0][0] if self._open else math.inf
        return stated if self._levels is None else min(stated, self._levels.least * self._scale)

    def put(self, turn: Turn) -> None:
        """Have machines wait for their next turn, unless all has been searched."""
        if not math.isinf(turn.least):
            heapq.heappush(self._open, (turn.least, next(self._tick), turn))

    def next(self) -> Turn | None:
        """The machines with the least bound; ``None`` where all have been searched.

        Raises ``LimitReachedError`` where a limit strikes.
        """
        stated = self._open[0][0] if self._open else math.inf
        pattern = None if self._levels is None else self._levels.take(stated / self._scale)
        if pattern is not None:
            machine = replace(self._problem, engine=storing(self._problem, pattern.stores))
            return Turn([machine], max(self._floor, pattern.key * self._scale))
        return heapq.heappop(self._open)[2] if self._open else None
