"""Small spaces, all of whose decisions are costed at once: to lay out a tree of them would take longer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.formulation.effort import Tally
from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, BatchReader
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves

_MOST = 1 << 13  # decisions


def is_small(problem: LayerProblem) -> bool:
    """Whether all decisions of a problem's space are costed at once."""
    return problem.space.size <= _MOST


def take_all(problem: LayerProblem, goal: Goal, tally: Tally) -> None:
    """Hand to a goal every decision of a small space that is legal, and that it wants.

    Parameters
    ----------
    problem : whose space it is
    tally : counts the decisions

    Raises
    ------
    OverflowError : where cycles are too many for exact floats
    """
    groups, selectors, statement = problem.space.groups, problem.space.selectors, problem.statement
    choices, sizes = tuple(len(selector.domain) for selector in selectors), tuple(map(len, groups))
    # Every choice and every group has an axis of its own, so that what depends on one is computed once.
    shape = (*choices, *sizes)
    tally.nodes += math.prod(shape)
    values: dict[Variable, Floats | int] = {
        selector: _along(place, selector.domain, shape) for place, selector in enumerate(selectors)
    }
    for place, group in enumerate(groups, len(choices)):
        values |= {tile: _along(place, group.sizes(tile), shape) for tile in group.variables}
    reader = BatchReader(values)
    legal = np.ones(shape, dtype=np.bool_)
    for limit in problem.limits:
        legal &= reader.read(limit.expr) <= limit.bound
    energy, cycles = (
        np.broadcast_to(reader.read(root), shape)[legal] for root in (statement.energy, statement.cycles)
    )
    if cycles.max(initial=0.0) >= EXACT_LIMIT:
        raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
    a, b = problem.objective.key_powers
    keys = energy**a * cycles**b
    wanted = np.flatnonzero(goal.wanted(energy, cycles, keys))
    combinations, rows = np.divmod(np.flatnonzero(legal)[wanted], math.prod(sizes))
    for combination in np.unique(combinations):
        options = map(int, np.unravel_index(combination, (1, *choices))[1:])
        alike = np.flatnonzero(combinations == combination)
        places = np.array(np.unravel_index(rows[alike], (1, *sizes)), dtype=np.int64)[1:]
        bounds = (own[wanted[alike]] for own in (energy, cycles, keys))
        goal.take(Leaves(problem, groups, places, dict(zip(selectors, options, strict=True)), *bounds))


def _along(place: int, values: Sequence[int] | Int64s, shape: Sequence[int]) -> Floats:
    """Some values along one of several axes."""
    axes = [1] * len(shape)
    axes[place] = shape[place]
    return np.asarray(values, dtype=np.float64).reshape(axes)
