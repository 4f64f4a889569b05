"""A quick first mapping: iterated descent over one or two axis groups at a time.

A proof starts from a cutoff, and the better the cutoff, the smaller the model.  From the mapping that
keeps single elements on chip, the rows of one group (or sampled pairs of rows of two) are evaluated all
at once while the others stay, for every choice of orders; the best legal one is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.problem import LayerProblem
from tilewright.formulation.search import Limits
from tilewright.solvers.cpsat.ends import Open
from tilewright.solvers.exhaustive import values
from tilewright.solvers.tables import Indices, Tables

PAIRS = 4096
CHOICES = 64
HEAT = 0.3


@dataclass(frozen=True, slots=True)
class Point:
    """A row per group and a value per selector.

    Parameters
    ----------
    key : the objective key as a float, infinite where a limit is broken
    """

    key: float
    rows: tuple[int, ...]
    selectors: tuple[int, ...]


class Dive:
    """One descent.

    Parameters
    ----------
    tables : of the problem's groups, with energy, cycles and limits among their roots
    left : the rows and choices to stay within
    """

    def __init__(self, problem: LayerProblem, tables: Tables, limits: Limits, left: Open) -> None:
        self._problem = problem
        self._tables = tables
        self._limits = limits
        self._random = np.random.default_rng(limits.seed)
        self._rows = left.rows
        self._choices = left.choices

    def run(self, seconds: float, rounds: int = 40, start: Point | None = None) -> Point | None:
        """The best point after so many perturbations, or after ``seconds``; ``None`` if all are illegal."""
        if not self._choices or not all(len(rows) for rows in self._rows):
            return None
        end = self._limits.elapsed + seconds
        here = best = self._descend(start or self._start(), end)
        for step in range(rounds):
            if self._limits.expired or (not self._limits.deterministic and self._limits.elapsed > end):
                break
            found = self._descend(self._kicked(here), end)
            slack = HEAT * (1 - step / rounds)
            if found.key <= here.key * (1 + slack):
                here = found
            if found.key < best.key:
                best = found
        return best if np.isfinite(best.key) else None

    def assignment(self, point: Point) -> dict[Variable, int]:
        """The point as an assignment of all decisions."""
        chosen = dict(zip(self._problem.space.selectors, point.selectors, strict=True))
        return {**self._tables.assignment(point.rows), **chosen}

    def _start(self) -> Point:
        """Tiles of one element wherever a tile may be chosen."""
        rows = tuple(
            int(rows[np.argmin(table.group.rows[rows].sum(axis=1))])
            for table, rows in zip(self._tables.tables, self._rows, strict=True)
        )
        point = Point(np.inf, rows, self._choices[0])
        return self._best(point, [np.array([row]) for row in rows])

    def _kicked(self, point: Point) -> Point:
        """Two groups moved at random to the best of a sample, under one choice of orders."""
        count = len(self._rows)
        moved = self._random.choice(count, size=min(2, count), replace=False)
        columns = self._columns(point, PAIRS)
        for position in moved:
            columns[position] = self._random.choice(self._rows[position], size=PAIRS)
        chosen = self._choices[self._random.integers(len(self._choices))]
        found = self._best(Point(np.inf, point.rows, chosen), columns, [chosen])
        return found if np.isfinite(found.key) else point

    def _descend(self, point: Point, end: float) -> Point:
        """Move one group at a time until none improves."""
        stale = 0
        position = 0
        while stale < len(self._rows) and not self._limits.expired:
            if not self._limits.deterministic and self._limits.elapsed > end:
                break
            columns = self._columns(point, len(self._rows[position]))
            columns[position] = self._rows[position]
            found = self._best(point, columns)
            stale = 0 if found.key < point.key else stale + 1
            point = found
            position = (position + 1) % len(self._rows)
        return point

    def _columns(self, point: Point, size: int) -> list[Indices]:
        return [np.full(size, row) for row in point.rows]

    def _some_choices(self, point: Point) -> list[tuple[int, ...]]:
        """All choices of orders, or the present one and a sample."""
        if len(self._choices) <= CHOICES:
            return self._choices
        picked = self._random.choice(len(self._choices), size=CHOICES, replace=False)
        return [point.selectors, *(self._choices[index] for index in picked)]

    def _best(
        self, point: Point, columns: list[Indices], choices: list[tuple[int, ...]] | None = None
    ) -> Point:
        """The best candidate among the rows, if better than the point."""
        choices = choices or self._some_choices(point)
        a, b = self._problem.objective.key_powers
        for chosen in choices:
            energy, cycles, legal = values(self._problem, self._tables, columns, chosen)
            key = np.where(legal, energy**a * cycles**b, np.inf)
            place = int(np.argmin(key))
            if key[place] < point.key:
                point = Point(float(key[place]), tuple(int(c[place]) for c in columns), tuple(chosen))
        return point
