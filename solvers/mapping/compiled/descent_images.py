"""Of mappings that are images of each other a descent keeps one.

Groups of tiles that may change places are kept in one sequence of their cells, and exchangeable axes of an
array in one sequence of what is spread along them (:mod:`tilewright.formulation.mapping.nests.exchange`).
"""

from __future__ import annotations

from tilewright.formulation.mapping.nests.exchange import BOTH, INNER, NEITHER
from tilewright.foundation.compiled import compiled
from tilewright.solvers.mapping.compiled.descent_state import STAGE, Decisions, Stack


@compiled(ieee=True)
def comparable(
    decisions: Decisions, stack: Stack, stage: int, level: int, group: int
) -> int:  # pragma: no cover
    """The group, or -1 where the expansion splits it after the one of this level.

    Cells of one stage alone are compared; those of a group that is still to be split are compared then.

    Parameters
    ----------
    group : -1 for none
    """
    for place in range(level + 1, decisions.split_counts[stage]):
        if stack.order[place] == group:
            return -1
    return group


@compiled(ieee=True)
def without_turned(decisions: Decisions, stack: Stack, level: int, count: int) -> int:  # pragma: no cover
    """Drop nodes of a level of which exchanged axes make others that are kept; how many are left.

    Of all that has no dimension on both axes, that is what the first group that is spread at all has on the
    inner one.

    Parameters
    ----------
    decisions : of the search
    stack : holds the nodes; those that stay move to the front of the level
    level : of the nodes
    count : how many nodes there are
    """
    stage, groups = stack.state[STAGE], stack.cells.shape[0]
    cells, known = stack.level_cells[level], stack.level_bounds[level]
    for array in range(len(decisions.sided)):
        if decisions.sided[array] != stage:
            continue
        size = 0
        for j in range(count):
            first, has_both = NEITHER, False
            for group in range(groups):
                at = decisions.sides_at[array, group]
                side = decisions.sides[(at if at >= 0 else -1 - at) + cells[group, j]]
                has_both = has_both or side == BOTH
                if first == NEITHER and at >= 0:
                    first = side
            if has_both or first != INNER:
                stack.indices[size] = j
                size += 1
        if size < count:
            for group in range(groups):
                row = cells[group]
                for j in range(size):
                    row[j] = row[stack.indices[j]]
            for which in range(3):
                bound = known[which]
                for j in range(size):
                    bound[j] = bound[stack.indices[j]]
            count = size
    return count
