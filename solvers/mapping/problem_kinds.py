"""Which search a problem asks for, told without loading any of them: most layers have one tree."""

from __future__ import annotations

import math

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.tables.stages import has_scratchpads

LARGE = 100_000  # rows of all axis groups together
PERFECT = "perfect factors"
"""The part of a space that is searched beside it, by name."""
FEW, MOST = 8, 1 << 20  # patterns, with which one tree is as quick, and beyond which they are too many
FEW_OF_SCRATCHPADS = 7  # with which it is on a machine with scratchpads of single tensors
SHARED_BY_FEW = 400_000  # rows of tiles, up to which one tree has all patterns of scratchpads' levels


def is_large(problem: LayerProblem) -> bool:
    """Whether filling the tables takes a second."""
    return problem.space.rows > LARGE


def has_patterns(problem: LayerProblem) -> bool:
    """Whether a problem is searched pattern by pattern.

    It has many patterns, all of which have machines of their own and bounds, and levels that store nothing
    have no loops.
    """
    patterns = math.prod(len(r.alternatives) for r in problem.space.nest.residency.values())
    if not (min(FEW, FEW_OF_SCRATCHPADS) < patterns <= MOST and problem.objective.key_powers[0]):
        return False
    from tilewright.formulation.mapping.parts.storage_parts import has_storage_parts
    from tilewright.solvers.mapping.patterns.pattern_machines import machines_stand_alone
    from tilewright.solvers.mapping.patterns.patterns_together import are_bounded_together

    few_rows = problem.space.rows <= SHARED_BY_FEW
    separates = has_scratchpads(problem.engine) and (few_rows or are_bounded_together(problem))
    if patterns <= (FEW_OF_SCRATCHPADS if separates else FEW):
        return False
    return machines_stand_alone(problem) and has_storage_parts(problem)
