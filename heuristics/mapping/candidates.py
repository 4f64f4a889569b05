"""Many mappings at once: one row of tile sizes per axis group, one value per choice, as arrays.

Heuristics draw, vary and score candidates by the thousand.  They are points of the problem's own map space,
so constraints, perfect and imperfect factors and every cost model hold without further care.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.effort import Tally
from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.parts.relaxation import problem_tables, root_bound, usable_rows
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.foundation.arrays import Bools, Floats, Indices
from tilewright.heuristics.mapping.neighbours import Neighbours


@dataclass(frozen=True, slots=True)
class Candidates:
    """Points of a map space.

    Parameters
    ----------
    rows : row of every axis group, of shape (groups, candidates)
    choices : value of every selector, of shape (selectors, candidates)
    """

    rows: Indices
    choices: Indices

    def __len__(self) -> int:
        return int(self.rows.shape[1])

    def take(self, index: Indices) -> Candidates:
        """Some of them, in the sequence of the index."""
        return Candidates(self.rows[:, index], self.choices[:, index])

    def replaced(self, mask: Bools, other: Candidates) -> Candidates:
        """Those of ``other`` where the mask is set."""
        return Candidates(np.where(mask, other.rows, self.rows), np.where(mask, other.choices, self.choices))


@dataclass(frozen=True, slots=True)
class Scores:
    """What candidates cost.

    Parameters
    ----------
    keys : objective key with energy in scaled units, infinite for illegal candidates
    excess : by how much constraints are overrun, relative and summed; 0 for legal candidates
    """

    keys: Floats
    excess: Floats

    @property
    def legal(self) -> Bools:
        return np.asarray(self.excess == 0)

    def take(self, index: Indices) -> Scores:
        return Scores(self.keys[index], self.excess[index])

    def ranking(self) -> Indices:
        """Best first: legal ones by key, then the others by excess."""
        return np.lexsort((self.keys, self.excess))

    def best(self) -> int:
        """The index of the best candidate."""
        return int(self.ranking()[0])


def joined(parts: list[tuple[Candidates, Scores]]) -> tuple[Candidates, Scores]:
    """Several batches of candidates, with their scores, as one."""
    return (
        Candidates(
            np.concatenate([c.rows for c, _ in parts], axis=1),
            np.concatenate([c.choices for c, _ in parts], axis=1),
        ),
        Scores(np.concatenate([s.keys for _, s in parts]), np.concatenate([s.excess for _, s in parts])),
    )


class Arena:
    """A problem as heuristics see it: tabulated, without rows that no mapping can use.

    Parameters
    ----------
    limits : ``LimitReachedError`` is raised where one strikes before everything is tabulated
    tally : counts the candidates that are scored

    Attributes
    ----------
    empty : whether some group has no usable row, so that there is no mapping
    bound : no mapping's objective key is below this, if anything is known
    """

    def __init__(
        self, problem: LayerProblem, limits: Limits | None = None, tally: Tally | None = None
    ) -> None:
        self.problem = problem
        self._tally = tally or Tally()
        tables = problem_tables(problem, limits)
        self.tables = tables.restricted(usable_rows(problem, tables, limits))
        self.sizes = np.array([len(table) for table in self.tables.tables], dtype=np.intp)
        self.options = np.array([len(s.domain) for s in problem.space.selectors], dtype=np.intp)
        self.empty = bool((self.sizes == 0).any())
        self.bound: Fraction | None = root_bound(problem, self.tables)
        self.neighbours = [Neighbours(table.group, problem.space.nest) for table in self.tables.tables]

    def draw(self, count: int, random: np.random.Generator) -> Candidates:
        """Independent candidates, every row and every choice equally likely."""
        rows = random.integers(self.sizes[:, None], size=(len(self.sizes), count))
        choices = random.integers(self.options[:, None], size=(len(self.options), count))
        return Candidates(rows.astype(np.intp), choices.astype(np.intp))

    def score(self, candidates: Candidates) -> Scores:
        """What candidates cost, by the problem's own expressions."""
        problem, count = self.problem, len(candidates)
        self._tally.nodes += count
        chosen: dict[Variable, Floats | int] = {
            selector: candidates.choices[place] for place, selector in enumerate(problem.space.selectors)
        }
        reader = BatchReader(chosen, self.tables.known([*candidates.rows]))
        excess = np.zeros(count)
        for limit in problem.limits:
            over = reader.read(limit.expr) - limit.bound
            excess += np.maximum(over, 0) / max(1, limit.bound)
        a, b = problem.objective.key_powers
        keys = np.ones(count)
        for power, expr in ((a, problem.statement.energy), (b, problem.statement.cycles)):
            if power:
                keys = keys * reader.read(expr) ** power
        return Scores(np.where(excess == 0, keys, np.inf), excess)

    def mapping(self, candidates: Candidates, index: int) -> Mapping:
        """The mapping that one candidate stands for."""
        assignment = self.tables.assignment([int(row) for row in candidates.rows[:, index]])
        choices = candidates.choices[:, index]
        for selector, choice in zip(self.problem.space.selectors, choices, strict=True):
            assignment[selector] = int(choice)
        return self.problem.decode(assignment)

    def offer_best(self, search: LayerSearch, candidates: Candidates, scores: Scores, source: str) -> None:
        """Offer the best candidate where it may improve the incumbent.

        Parameters
        ----------
        search : keeps the incumbent
        candidates : rows of the tables and choices of the selectors
        scores : of these candidates, in their order
        source : what the trace calls the answer
        """
        if not len(candidates):
            return
        best = scores.best()
        if not scores.legal[best]:
            return
        value = search.key
        if value is None or scores.keys[best] < float(value * self.problem.key_scale):
            search.offer(self.mapping(candidates, best), source, origin=Origin.HEURISTIC)


def begin(search: LayerSearch, source: str) -> Arena:
    """The arena of a search, with its root bound reported."""
    arena = Arena(search.problem, search.limits, search.tally)
    if arena.bound is not None and (search.key is None or arena.bound <= search.key):
        search.raise_bound(arena.bound, source)
    return arena
