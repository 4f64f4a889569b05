"""A quick first mapping: iterated descent over one or two axis groups at a time.

A proof starts from a cutoff, and the better the cutoff, the smaller the model.  From the mapping that
keeps single elements on chip, all rows of one group are evaluated at once while the others stay, for
every choice of orders; where none improves, all pairs of small moves in two groups: a factor that leaves
one loop for another one.  Such pairs trade the array and the buffers between dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Indices, Int64s
from tilewright.solvers.mapping.exhaustive import values
from tilewright.solvers.mapping.presolve.intervals import OpenSpace

SAMPLE = 4096
MOVES = 48  # small moves of one group
CHOICES = 64
HEAT = 0.3  # how much worse a start may be, at first
ROUNDS = 40
STEADY_ROUNDS = 10  # where the clock must not decide


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
    """Iterated descent over one or two axis groups at a time.

    Parameters
    ----------
    tables : of the problem's groups, with energy, cycles and limits among their roots
    left : the rows and choices to stay within
    share, longest : the descent's part of the time that is left, and its most seconds; reproducible ones end
        after so many steps instead
    """

    def __init__(
        self,
        problem: LayerProblem,
        tables: Tables,
        limits: Limits,
        left: OpenSpace,
        share: float,
        longest: float,
    ) -> None:
        self._problem = problem
        self._tables = tables
        self._limits = limits if limits.deterministic else limits.share(share, longest)
        self._random = np.random.default_rng(limits.seed)
        self._rows = left.rows
        self._choices = left.choices
        self._trips = [_trips(problem, table.group) for table in tables.tables]

    def run(self, start: Point | None = None) -> Point | None:
        """The best point after so many perturbations, or at a limit; ``None`` if all are illegal."""
        if not self._choices or not all(len(rows) for rows in self._rows):
            return None
        # Reproducible runs may not look at the clock, so their effort is counted in rounds.
        most = STEADY_ROUNDS if self._limits.deterministic else ROUNDS
        rounds = min(most, self._problem.space.size.bit_length())
        here = best = self._descend(start or self._start())
        for step in range(rounds):
            if self._limits.expired:
                break
            point = self._descend(self._perturbed(here))
            # Slightly worse points are accepted at first, and fewer towards the end, as in annealing.
            slack = HEAT * (1 - step / rounds)
            if point.key <= here.key * (1 + slack):
                here = point
            if point.key < best.key:
                best = point
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

    def _perturbed(self, point: Point) -> Point:
        """Two groups moved at random to the best of a sample, under one choice of orders."""
        count = len(self._rows)
        if not count:
            return point
        moved = self._random.choice(count, size=min(2, count), replace=False)
        columns = self._columns(point, SAMPLE)
        for position in moved:
            columns[position] = self._random.choice(self._rows[position], size=SAMPLE)
        chosen = self._choices[self._random.integers(len(self._choices))]
        perturbed = self._best(Point(np.inf, point.rows, chosen), columns, [chosen])
        return perturbed if np.isfinite(perturbed.key) else point

    def _descend(self, point: Point) -> Point:
        """Improve until neither a group alone nor a pair of small moves helps."""
        while True:
            point = self._alone(point)
            if self._limits.expired:
                return point
            # A tile of one group often fits only where one of another group shrinks.
            better = self._best(point, self._pairs(point))
            if better.key >= point.key:
                return point
            point = better

    def _alone(self, point: Point) -> Point:
        """Move one group at a time, to any of its rows, until none improves."""
        # Round robin: it ends once every group has been tried in vain.
        stale = position = 0
        while stale < len(self._rows) and not self._limits.expired:
            columns = self._columns(point, len(self._rows[position]))
            columns[position] = self._rows[position]
            moved = self._best(point, columns)
            stale = 0 if moved.key < point.key else stale + 1
            point = moved
            position = (position + 1) % len(self._rows)
        return point

    def _pairs(self, point: Point) -> list[Indices]:
        """All pairs of small moves in two groups."""
        near = [self._near(position, row) for position, row in enumerate(point.rows)]
        blocks = [self._columns(point, 1)]
        for first, second in combinations(range(len(near)), 2):
            columns = self._columns(point, len(near[first]) * len(near[second]))
            columns[first] = np.repeat(near[first], len(near[second]))
            columns[second] = np.tile(near[second], len(near[first]))
            blocks.append(columns)
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def _near(self, position: int, row: int) -> Indices:
        """Rows in which one factor stands in another loop."""
        trips = self._trips[position]
        rows = self._rows[position]
        near = rows[(trips[rows] != trips[row]).sum(axis=1) <= 2]
        return near if len(near) <= MOVES else self._random.choice(near, size=MOVES, replace=False)

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
            if self._limits.expired:
                break
            try:
                energy, cycles, legal = values(self._problem, self._tables, columns, chosen, self._limits)
            except LimitReachedError:
                break
            # Illegal candidates are never the best, unless all are.
            key = np.where(legal, energy**a * cycles**b, np.inf)
            place = int(np.argmin(key))
            if key[place] < point.key:
                point = Point(float(key[place]), tuple(int(c[place]) for c in columns), tuple(chosen))
        return point


def _trips(problem: LayerProblem, group: AxisGroup) -> Int64s:
    """Trip counts of every loop of a group's dimensions, row by row."""
    place = {variable: column for column, variable in enumerate(group.variables)}
    columns = []
    for dim in group.dims:
        edges = [edge[dim] for edge in problem.space.nest.boundaries]
        decided = [place[edge] for edge in dict.fromkeys(edges) if isinstance(edge, Variable)]
        sizes = np.ones((len(group), len(decided) + 2), dtype=np.int64)
        sizes[:, 0] = problem.operator.bounds[dim]
        sizes[:, 1:-1] = group.rows[:, decided]
        columns.append(-(-sizes[:, :-1] // sizes[:, 1:]))
    return np.concatenate(columns, axis=1)
