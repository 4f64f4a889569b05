"""Decisions as rows and choices, with the exact figures of the evaluator's expressions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Indices


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a solver, as the evaluator's expressions see it.

    Parameters
    ----------
    rows, choices : by group and by selector
    key : scaled objective key
    """

    rows: tuple[int, ...]
    choices: tuple[int, ...]
    assignment: dict[Variable, int]
    legal: bool
    energy: int
    cycles: int
    key: int


def evaluated(
    problem: LayerProblem, tables: Tables, rows: tuple[int, ...], choices: tuple[int, ...]
) -> Decision:
    """The decision of some rows and choices, with its exact figures.

    Parameters
    ----------
    problem : gives limits, energy and cycles
    tables : the rows of every axis group
    rows : one per group
    choices : the option of each selector
    """
    chosen = dict(zip(problem.space.selectors, choices, strict=True))
    assignment = {**tables.assignment(rows), **chosen}
    reader = ExactReader(assignment)
    energy, cycles = reader.read(problem.statement.energy), reader.read(problem.statement.cycles)
    legal = all(reader.read(limit.expr) <= limit.bound for limit in problem.limits)
    a, b = problem.objective.key_powers
    return Decision(rows, choices, assignment, legal, energy, cycles, energy**a * cycles**b)


def distinct(tables: Tables, axis: int, rows: Indices) -> Indices:
    """Rows that differ in something that the objective or a limit depends on; the first of equal ones."""
    values = [v[rows] for v in tables.tables[axis].values.values()]
    if not values or len(rows) < 2:
        return rows[:1] if not values else rows
    _, first = np.unique(np.column_stack(values), axis=0, return_index=True)
    return rows[np.sort(first)]


def twin(tables: Tables, axis: int, rows: Indices, row: int) -> int | None:
    """The place of a row, or of one that is equal in all that matters.

    Parameters
    ----------
    tables : the rows of every axis group, with the values that the objective and the limits read
    axis : position of the group
    rows : open rows of that group
    row : the one that is looked for
    """
    same = np.flatnonzero(rows == row)
    if len(same):
        return int(same[0])
    equal = np.ones(len(rows), dtype=bool)
    for values in tables.tables[axis].values.values():
        equal &= values[rows] == values[row]
    places = np.flatnonzero(equal)
    return int(places[0]) if len(places) else None
