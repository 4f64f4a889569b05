"""Bounds that hold for every mapping of a problem, from the tables of its axis groups.

Interval arithmetic over whole tables (``docs/proofs.md``, bounds by intervals): a lower bound of the
objective key, and rows of tile sizes that no mapping can use because a constraint fails whatever the other
groups do.  Both cost milliseconds; branch and bound starts from the same bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from fractions import Fraction

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.chains import MANY_ROWS, AxisGroup, Sizes, no_check
from tilewright.formulation.mapping.tiles.tables import GroupTable, Tables
from tilewright.foundation.arrays import Bools, Floats, Indices

_FEW = 10_000  # rows that cost nothing to tabulate
_BLOCK = 1 << 13  # rows that are read at once
_WORTHWHILE = 0.8  # of the rows, up to which a look at all of them pays
_SAMPLE = 1 << 10  # rows of a group that tell how many of all are wanted
_SAFE = 1 - 1e-12  # relative; far above the rounding of a product of a few floats


GroupIntervals = MappingABC[Expr, tuple[Floats, Floats]]


class GroupIntervalReader(IntervalReader):
    """Reads expressions with known bounds of what depends on one axis group."""

    def __init__(
        self, intervals: Sequence[GroupIntervals], chosen: MappingABC[Variable, int] | None = None
    ) -> None:
        super().__init__(chosen or {})
        self._intervals = intervals

    def known_low(self, expr: Expr) -> Floats | None:
        return self._known(expr, 0)

    def known_high(self, expr: Expr) -> Floats | None:
        return self._known(expr, 1)

    def _known(self, expr: Expr, side: int) -> Floats | None:
        if expr.group is not None:
            for intervals in self._intervals:
                ends = intervals.get(expr)
                if ends is not None:
                    return ends[side]
        return None


def group_intervals(table: GroupTable, rows: Indices | None = None) -> GroupIntervals:
    """The least and the largest value of every tabulated node, over some rows or all; at least one."""
    result: dict[Expr, tuple[Floats, Floats]] = {}
    for node in table.values:
        # one column at a time: all of them take hundreds of MB
        values = table.values[node] if rows is None else table.values.take(node, rows)
        result[node] = np.asarray(values.min()), np.asarray(values.max())
    return result


def problem_tables(problem: LayerProblem, checked_limits: Limits | None = None) -> Tables:
    """Tables of all that objective and constraints read; ``LimitReachedError`` where a limit strikes."""
    limits = [limit.expr for limit in problem.limits]
    roots = [problem.statement.energy, problem.statement.cycles, *limits]
    return Tables(problem.space.groups, roots, checked_limits)


def usable_rows(problem: LayerProblem, tables: Tables, checked_limits: Limits | None = None) -> list[Indices]:
    """Per group, the rows with which every constraint, taken alone, may still hold.

    Raises ``LimitReachedError`` where a limit strikes.
    """
    intervals = [group_intervals(table) if len(table) else {} for table in tables.tables]
    result: list[Indices] = []
    for position, table in enumerate(tables.tables):
        keep = np.ones(len(table), dtype=bool)
        others = [*intervals[:position], *intervals[position + 1 :]]
        # In blocks, whose intermediate values stay in the processor's cache.
        for start in range(0, len(table) if all(len(other) for other in tables.tables) else 0, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(table)))
            values = {node: table.values.take(node, rows) for node in table.values}
            reader = GroupIntervalReader([{node: (own, own) for node, own in values.items()}, *others])
            for limit in problem.limits:
                if checked_limits is not None:
                    checked_limits.check()
                keep[rows] &= reader.low(limit.expr) <= limit.bound
        result.append(np.flatnonzero(keep))
    return result


def legal_sizes(problem: LayerProblem, group: AxisGroup, checked_limits: Limits | None = None) -> Sizes:
    """Of each of a group's variables, the tile sizes with which every constraint, taken alone, may hold.

    Raises ``LimitReachedError`` where a limit strikes.
    """
    sizes: dict[Variable, tuple[int, ...]] = {}
    for variable in group.variables:
        values = np.array(variable.domain, dtype=np.float64)
        reader = GroupIntervalReader([{variable: (values, values)}])
        legal = np.ones(len(values), dtype=bool)
        for limit in problem.limits:
            if checked_limits is not None:
                checked_limits.check()
            legal &= reader.low(limit.expr) <= limit.bound
        sizes[variable] = tuple(np.array(variable.domain)[legal].tolist())
    return sizes


def legal_groups(problem: LayerProblem, checked_limits: Limits | None = None) -> tuple[AxisGroup, ...]:
    """The axis groups, large ones without rows that no legal mapping has.

    Of all that is tabulated the limits are the cheapest, and they exclude most rows of large dimensions.
    Where there are very many rows, tiles that are too large by themselves are left out before they are made.
    Raises ``LimitReachedError`` where a limit strikes.
    """
    groups = tuple(
        group.narrowed(legal_sizes(problem, group, checked_limits))
        if group.narrowed and group.most > MANY_ROWS
        else group
        for group in problem.space.groups
    )
    for group in groups:
        group.make(no_check if checked_limits is None else checked_limits.check)
    if sum(len(group) for group in groups) <= _FEW:
        return groups
    tables = Tables(groups, [limit.expr for limit in problem.limits], checked_limits)
    kept = usable_rows(problem, tables, checked_limits)
    return tuple(
        group if len(rows) == len(group) else group.having(group.rows[rows])
        for group, rows in zip(groups, kept, strict=True)
    )


def wanted_rows(
    problem: LayerProblem,
    tables: Tables,
    wanted: Callable[[Floats, Floats, Floats], Bools],
    checked_limits: Limits | None = None,
) -> list[Indices]:
    """Per group, the rows that a search may want, whatever the other groups do.

    A row is left out where its bounds, the other groups being at their least, are unwanted.  What is left of
    one group narrows the intervals of the others, so large spaces are looked at again while that helps.
    Every group keeps a row, so that there is a space to search.  Large groups keep all rows where a sample of
    them shows that nearly all are wanted.  Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    tables : with values of energy and cycles
    wanted : tells of lower bounds of energy (scaled), cycles and key which ones are wanted; what is unwanted
        once stays so
    checked_limits : checked between blocks of rows
    """
    kept = [np.arange(len(table)) for table in tables.tables]
    if not all(len(rows) for rows in kept):
        return kept
    intervals = [group_intervals(table) for table in tables.tables]

    def wanted_among(position: int, rows: Indices) -> Indices:
        """Those of some rows of a group that are wanted."""
        table, others = tables.tables[position], [*intervals[:position], *intervals[position + 1 :]]
        parts = [rows[:0]]
        for start in range(0, len(rows), _BLOCK):
            if checked_limits is not None:
                checked_limits.check()
            block = rows[start : start + _BLOCK]
            parts.append(block[_are_wanted(problem, table, block, others, wanted)])
        return np.concatenate(parts)

    before, size = math.inf, sum(map(len, kept))
    while size < _WORTHWHILE * before:
        for position, rows in enumerate(kept):
            if len(rows) > _BLOCK:  # fewer are judged about as soon as a sample of them
                sample = rows[:: len(rows) // _SAMPLE]
                if len(wanted_among(position, sample)) >= _WORTHWHILE * len(sample):
                    continue
            left = wanted_among(position, rows)
            if len(left) < len(rows):
                kept[position] = left if len(left) else rows[:1]
                intervals[position] = group_intervals(tables.tables[position], kept[position])
        before, size = size, sum(map(len, kept))
        if size <= _FEW:
            break
    return kept


def _are_wanted(
    problem: LayerProblem,
    table: GroupTable,
    rows: Indices,
    others: Sequence[GroupIntervals],
    wanted: Callable[[Floats, Floats, Floats], Bools],
) -> Bools:
    """Which rows of a group a search may want."""
    values = {node: table.values.take(node, rows) for node in table.values}
    reader = GroupIntervalReader([{node: (column, column) for node, column in values.items()}, *others])
    energy, cycles = (
        np.broadcast_to(np.maximum(reader.low(root), 0.0), (len(rows),))
        for root in (problem.statement.energy, problem.statement.cycles)
    )
    a, b = problem.objective.key_powers
    return wanted(energy, cycles, energy**a * cycles**b)


def within_limits(
    problem: LayerProblem, intervals: Sequence[GroupIntervals], chosen: MappingABC[Variable, int]
) -> bool:
    """Whether every constraint, taken alone, may hold, given the intervals of every group."""
    reader = GroupIntervalReader(intervals, chosen)
    return all(bool(reader.low(limit.expr) <= limit.bound) for limit in problem.limits)


def root_bound(problem: LayerProblem, tables: Tables) -> Fraction | None:
    """No mapping's objective key is below this; ``None`` where nothing positive is known."""
    if not all(len(table) for table in tables.tables):
        return None
    reader = GroupIntervalReader([group_intervals(table) for table in tables.tables])
    a, b = problem.objective.key_powers
    energy = float(reader.low(problem.statement.energy)) if a else 1.0
    cycles = float(reader.low(problem.statement.cycles)) if b else 1.0
    if energy <= 0 or cycles <= 0:
        return None
    key = max(energy, 0.0) ** a * max(cycles, 0.0) ** b
    return Fraction(int(key * _SAFE)) / problem.key_scale if np.isfinite(key) else None
