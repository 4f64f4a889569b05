"""An initial mapping and bound for large problems, before their tables are filled.

With imperfect factors a dimension of tens of thousands of iterations has more than a million chains of tile
sizes; to tabulate them takes seconds, in which a limit may strike.  Perfect factors are a subset of them
with a few thousand chains, so branch and bound on that subset has its optimum in a fraction of the time; it
closes much of the whole space, and often is the best there.  Reading the objective with plain intervals
bounds it from below.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.solvers.mapping.branch import BAND, Branch

LARGE = 2_000  # rows of all axis groups together
MOST = 20_000  # rows of the subset
SHARE = 0.4  # of the time that is left
LONGEST = 2.0  # seconds

SOURCE = "perfect factors"


def is_large(problem: LayerProblem) -> bool:
    """Whether proofs take long enough for a subset to be searched first."""
    return _rows(problem) > LARGE


def _rows(problem: LayerProblem) -> int:
    return sum(len(group) for group in problem.space.groups)


def offer_initial_solution(search: LayerSearch) -> None:
    """Offer a mapping with perfect factors and a bound from plain intervals."""
    problem = search.problem
    if not problem.is_uneven:
        bound = _plain_bound(problem)
        if bound > 0:
            search.raise_bound(bound, "intervals")
    if problem.space.nest.perfect:
        return
    limits = search.limits
    stated = problem.with_perfect_factors()
    if _rows(stated) > MOST:
        return
    longest = None if limits.deterministic else LONGEST
    inner = LayerSearch(stated, limits.share(SHARE, longest))
    with suppress(LimitReachedError):  # the share of this, not the limit of the search
        Branch().solve(inner)
    if inner.answer is not None:
        search.offer(inner.answer, SOURCE, origin=Origin.HEURISTIC)


def _plain_bound(problem: LayerProblem) -> Fraction:
    """A lower bound of the objective key, without tables."""
    reader = IntervalReader({})
    key = 1.0
    roots = (problem.statement.energy, problem.statement.cycles)
    for root, power in zip(roots, problem.objective.key_powers, strict=True):
        if power:
            key *= max(0.0, float(reader.low(root))) ** power
    return Fraction(int(key * (1 - BAND))) / problem.key_scale
