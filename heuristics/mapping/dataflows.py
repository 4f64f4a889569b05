"""The fixed dataflows that dMazeRunner compares with (section 6): SOC, MOC, WS1, WS2 and RS.

A dataflow restricts the problem (:mod:`tilewright.formulation.mapping.demands.dataflow`); what it leaves open
is filled

- greedily (``fill=greedy``): spread each dimension as far as the array allows, then enlarge the tiles of
  every level from the PEs outwards, dimension by dimension in the dataflow's order of preference, as far as
  the level holds them; or
- from there on by annealing within the dataflow (``fill=search``): what the dataflow could do at its best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as cartesian
from typing import ClassVar

import numpy as np

from tilewright import __version__
from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.demands.dataflow import MOC, RS, SOC, WS1, WS2, Dataflow, restricted
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import level_positions
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.annealing import Annealing
from tilewright.heuristics.mapping.candidates import Arena
from tilewright.heuristics.mapping.partial import DecisionSpace, Measure, Partial, stated_key

_SUMS_FIRST = ("R", "S", "C", "Q", "P", "K", "G", "N")
_WEIGHTS_REUSED_FIRST = ("Q", "P", "N", "R", "S", "C", "K", "G")
_ROWS_FIRST = ("S", "C", "K", "Q", "P", "R", "N", "G")


@dataclass(frozen=True)
class FixedDataflow:
    """A dataflow with its open tile sizes filled."""

    fill: str = option(
        "greedy", "greedy, or search: anneal within the dataflow", choices=("greedy", "search")
    )

    dataflow: ClassVar[Dataflow]
    preferences: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]]
    """Dimensions to enlarge first, in the PEs and in the levels outside them."""

    exact = False

    @property
    def name(self) -> str:
        return self.dataflow.name

    @property
    def stochastic(self) -> bool:
        """Whether the answer depends on the seed."""
        return self.fill == "search"

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Restrict the problem to the dataflow, fill in open tile sizes and offer the mappings."""
        problem = restricted(search.problem, self.dataflow)
        self._fill_greedily(search, problem)
        if self.fill == "search":
            arena = Arena(problem, search.limits, search.tally)
            if not arena.empty:
                random = np.random.default_rng(search.limits.seed)
                Annealing().explore(search, arena, random, self.name)
        return Outcome(False, "" if search.key is not None else "the dataflow has no mapping here")

    def _fill_greedily(self, search: LayerSearch, problem: LayerProblem) -> None:
        """One filling per choice of orders and residencies that the dataflow leaves."""
        decision_space = DecisionSpace(problem, search.limits)
        for chosen in _choices(problem):
            if search.done:
                return
            search.tally.nodes += 1
            partial = Partial.whole(decision_space, chosen)
            if not partial.feasible:
                continue
            for measure in self._measures(problem):
                search.limits.check()
                partial = partial.largest(measure)
            assignment = partial.assignment()
            key = stated_key(problem, assignment)
            if key is not None and (search.key is None or key < search.key):
                search.offer(problem.decode(assignment), self.name, origin=Origin.HEURISTIC)

    def _measures(self, problem: LayerProblem) -> Iterator[Measure]:
        """What is made as large as possible, one after the other."""
        nest, operator = problem.space.nest, problem.operator
        likes = {dimension.name: dimension.like for dimension in operator.dimensions}
        for like in self.dataflow.spread:
            for dim in (name for name in likes if likes[name] == like):
                yield from (Measure(dim, block, spatial=True) for block in nest.spatial)
        positions = level_positions(nest.blocks)
        innermost = max(positions)
        for level in sorted(positions, reverse=True):
            if level == 0:
                continue
            for like in self.preferences[0] if level == innermost else self.preferences[1]:
                yield from (Measure(dim, positions[level]) for dim in likes if likes[dim] == like)


def _choices(problem: LayerProblem) -> Iterator[dict[Variable, int]]:
    """All choices of orders and residencies."""
    selectors = problem.space.selectors
    for values in cartesian(*(selector.domain for selector in selectors)):
        yield dict(zip(selectors, values, strict=True))


@dataclass(frozen=True)
class SingleOutputChannel(FixedDataflow):
    """Output-stationary, one output channel at a time."""

    dataflow = SOC
    preferences = (_SUMS_FIRST, _SUMS_FIRST)


@dataclass(frozen=True)
class MultipleOutputChannels(FixedDataflow):
    """Output-stationary, several output channels at a time."""

    dataflow = MOC
    preferences = (_SUMS_FIRST, _SUMS_FIRST)


@dataclass(frozen=True)
class WeightStationary(FixedDataflow):
    """Weight-stationary, filter positions spread."""

    dataflow = WS1
    preferences = (_WEIGHTS_REUSED_FIRST, _WEIGHTS_REUSED_FIRST)


@dataclass(frozen=True)
class CoarseWeightStationary(FixedDataflow):
    """Weight-stationary, channels spread."""

    dataflow = WS2
    preferences = (_WEIGHTS_REUSED_FIRST, _WEIGHTS_REUSED_FIRST)


@dataclass(frozen=True)
class RowStationary(FixedDataflow):
    """Row-stationary."""

    dataflow = RS
    preferences = (_ROWS_FIRST, _SUMS_FIRST)
