"""The map space in subproblems: one per choice of orders and residencies, and ranges of cycles within.

A choice that is decided removes all cases from a model, and intervals over the rows left open by it close
many more rows than they do for all choices together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Indices
from tilewright.solvers.mapping.mip.decision import Decision
from tilewright.solvers.mapping.presolve.intervals import OpenSpace, TableIntervals, probe

MOST = 256  # beyond so many, choices stay in the model

Excluded = tuple[list[Indices], dict[Variable, int]]


@dataclass(order=True)
class Subproblem:
    """A part of the map space.

    Parameters
    ----------
    bound : no decision in it has a smaller key (scaled, an integer)
    left : open rows and choices
    cycles : least and greatest cycles; ``None`` where they do not count
    boxes : sets of rows per group and choices that hold nothing better than the incumbent
    visited : decisions at which lines are wanted
    """

    bound: int
    left: OpenSpace = field(compare=False)
    cycles: tuple[int, int] | None = field(default=None, compare=False)
    boxes: list[Excluded] = field(default_factory=list, compare=False)
    visited: list[Decision] = field(default_factory=list, compare=False)


def subproblems_of(
    problem: LayerProblem, tables: Tables, left: OpenSpace, key: int | None, limits: Limits
) -> list[Subproblem]:
    """What is left of the space, in subproblems that may hold something better than ``key``.

    Parameters
    ----------
    problem : gives limits, energy and cycles
    tables : the rows of every axis group
    left : rows and choices that are open
    key : scaled key that has to be beaten; ``None`` while nothing is known
    limits : checked before each choice; one that strikes is raised
    """
    if left.empty:
        return []
    parts: Sequence[list[tuple[int, ...]]] = [left.choices]
    if len(left.choices) <= MOST:
        parts = [[chosen] for chosen in left.choices]
    subproblems = []
    for choices in parts:
        limits.check()
        here = probe(problem, tables, OpenSpace(list(left.rows), list(choices)), key, limits)
        if not here.empty:
            subproblems.append(subproblem_of(problem, tables, here))
    return subproblems


def subproblem_of(problem: LayerProblem, tables: Tables, left: OpenSpace) -> Subproblem:
    """A subproblem with its bound by intervals, and its range of cycles where they count too."""
    fixed = {
        selector: left.choices[0][i]
        for i, selector in enumerate(problem.space.selectors)
        if len({chosen[i] for chosen in left.choices}) == 1
    }
    intervals = TableIntervals(tables, left.rows, fixed)
    a, b = problem.objective.key_powers
    energy = max(0, intervals.whole_low(problem.statement.energy)) if a else 1
    cycles = max(0, intervals.whole_low(problem.statement.cycles)) if b else 1
    both = (max(1, cycles), intervals.whole_high(problem.statement.cycles)) if a and b else None
    return Subproblem(energy**a * cycles**b, left, both)


def halves(subproblem: Subproblem, low: int, high: int) -> list[Subproblem]:
    """The subproblem's decisions of ``low`` to ``high`` cycles, in two parts."""
    middle = min(max(isqrt(low * high), low), high - 1)
    return [
        Subproblem(
            subproblem.bound, subproblem.left, cycles, list(subproblem.boxes), list(subproblem.visited)
        )
        for cycles in ((low, middle), (middle + 1, high))
    ]
