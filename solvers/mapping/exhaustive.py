"""The exhaustive oracle: every mapping of the space, evaluated.  The judge of all other solvers.

It shares nothing with them but the expressions: its proofs need no bound, no order of search, no dominance.
Where a limit ends it early, the bound that it leaves is what intervals prove of the whole space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian
from math import prod

import numpy as np

from tilewright import __version__
from tilewright.formulation.effort import Tally
from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, BatchReader
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.method import Outcome
from tilewright.foundation.arrays import Floats, Indices

CHUNK = 1 << 15
LARGEST = 10**8
_NEARLY = 1e-9  # relative; far above the rounding of a product of two exact floats


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the space: a row per group, a value per selector, and its exact objective key."""

    key: Fraction
    rows: tuple[int, ...]
    selectors: tuple[int, ...]


class Exhaustive:
    """Evaluates every combination of tile sizes, orders and residencies."""

    name = "exhaustive"
    exact = True

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Offer every improvement; prove by having seen everything.

        A space that is too large for that is refused, unless a time limit ends the search.
        """
        problem, limits = search.problem, search.limits
        if problem.space.size > LARGEST and limits.seconds is None:
            return Outcome(
                False,
                f"{problem.space.size:.3g} mappings are more than exhaustive search takes ({LARGEST:.0e})",
                error=True,
            )
        tables = _tables(problem, limits)
        best: Fraction | None = None
        stopped = False
        # One candidate per chunk and choice: the best of it, so that few are judged by the evaluator.
        for candidate in minima(problem, tables, limits, search.tally):
            if best is None or candidate.key < best:
                best = candidate.key
                search.confirm(problem.decode(_assignment(problem, tables, candidate)), self.name)
            if limits.ends(search):
                stopped = True
                break
        if stopped or limits.expired:
            _bound(search, tables, self.name)
            return Outcome(False)
        if best is not None:
            search.raise_bound(best, self.name)
        return Outcome(True, "" if best is not None else "no mapping satisfies all constraints")


def _tables(problem: LayerProblem, limits: Limits | None = None) -> Tables:
    statement = problem.statement
    roots = [statement.energy, statement.cycles, *(limit.expr for limit in problem.limits)]
    return Tables(problem.space.groups, roots, limits)


class _Whole(IntervalReader):
    """Intervals over the whole space."""

    def __init__(self, tables: Tables) -> None:
        super().__init__({})
        local = [item for table in tables.tables for item in table.values.items()]
        self._least = {node: np.asarray(values.min()) for node, values in local}
        self._most = {node: np.asarray(values.max()) for node, values in local}

    def known_low(self, expr: Expr) -> Floats | None:
        return self._least.get(expr)

    def known_high(self, expr: Expr) -> Floats | None:
        return self._most.get(expr)


def _bound(search: LayerSearch, tables: Tables, source: str) -> None:
    """What intervals prove of everything, rounded down."""
    problem = search.problem
    intervals = _Whole(tables)
    a, b = problem.objective.key_powers
    energy, cycles = (
        max(0, int(float(intervals.low(expr)) * (1 - _NEARLY)))
        for expr in (problem.statement.energy, problem.statement.cycles)
    )
    key = Fraction(energy**a * cycles**b, problem.key_scale)
    if key > 0:
        search.raise_bound(key, source)


def _assignment(problem: LayerProblem, tables: Tables, candidate: Candidate) -> dict[Variable, int]:
    choices = dict(zip(problem.space.selectors, candidate.selectors, strict=True))
    return {**tables.assignment(candidate.rows), **choices}


def minima(
    problem: LayerProblem,
    tables: Tables | None = None,
    limits: Limits | None = None,
    tally: Tally | None = None,
) -> Iterator[Candidate]:
    """The best candidate of every chunk of the space, in order of enumeration, until a limit strikes.

    Parameters
    ----------
    problem : whose space it is
    tables : of its groups, if they are there
    limits : end the enumeration
    tally : counts the candidates
    """
    tables = tables or _tables(problem)
    sizes = tables.sizes
    domains = [selector.domain for selector in problem.space.selectors]
    for start in range(0, prod(sizes), CHUNK):
        rows = _rows(sizes, start)
        for selectors in cartesian(*domains):
            if limits is not None and limits.expired:
                return
            try:
                minimum = _best(problem, tables, rows, selectors, limits)
            except LimitReachedError:
                return
            if tally is not None:
                tally.nodes += len(rows[0]) if rows else 1
            if minimum is not None:
                yield minimum
        if prod(sizes) == 0:
            return


def _rows(sizes: Sequence[int], start: int) -> list[Indices]:
    flat = np.arange(start, min(start + CHUNK, prod(sizes)))
    return [np.asarray(index) for index in np.unravel_index(flat, sizes)] if sizes else []


def values(
    problem: LayerProblem,
    tables: Tables,
    rows: Sequence[Indices],
    selectors: Sequence[int],
    limits: Limits | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Energy (scaled), cycles and legality of many candidates with the same selectors.

    Raises ``LimitReachedError`` where a limit strikes in the middle.

    Parameters
    ----------
    problem : whose energy, cycles and limits are read
    tables : the rows of every axis group
    rows : per group, the row of each candidate, shape (candidates,)
    selectors : the option of each selector, the same for all candidates
    limits : checked before every node that is computed
    """
    count = len(rows[0]) if rows else 1
    chosen = dict(zip(problem.space.selectors, selectors, strict=True))
    known = tables.known(rows)
    reader = BatchReader(chosen, known) if limits is None else BatchReader(chosen, known, limits.check)
    legal = np.ones(count, dtype=bool)
    for limit in problem.limits:
        legal &= reader.read(limit.expr) <= limit.bound
    energy = np.broadcast_to(reader.read(problem.statement.energy), (count,))
    cycles = np.broadcast_to(reader.read(problem.statement.cycles), (count,))
    return energy, cycles, legal


def _best(
    problem: LayerProblem,
    tables: Tables,
    rows: Sequence[Indices],
    selectors: Sequence[int],
    limits: Limits | None,
) -> Candidate | None:
    energy, cycles, legal = values(problem, tables, rows, selectors, limits)
    places = np.flatnonzero(legal)
    if not len(places):
        return None
    energy, cycles = energy[places], cycles[places]
    if max(energy.max(), cycles.max()) >= EXACT_LIMIT:
        raise OverflowError("counts beyond 2**53: the layer is too large for exact enumeration")
    a, b = problem.objective.key_powers
    key = energy**a * cycles**b
    # Keys are products of exact floats and may be rounded: near ties are decided by exact fractions.
    near = np.flatnonzero(key <= key.min() * (1 + _NEARLY))
    # Many candidates have equal figures, each of which is compared once.
    pairs = np.unique(np.column_stack([energy[near], cycles[near]]), axis=0)
    exact = {(e, c): Fraction(int(e)) ** a * int(c) ** b for e, c in pairs}
    least = min(exact, key=lambda pair: (exact[pair], pair))
    winner = near[np.flatnonzero((energy[near] == least[0]) & (cycles[near] == least[1]))[0]]
    place = places[winner]
    return Candidate(
        exact[least] / problem.key_scale, tuple(int(index[place]) for index in rows), tuple(selectors)
    )
