"""The decisions of a problem as literals: one per open row of every group and per value of a selector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.solvers.cpsat_rows import WIDE
from tilewright.solvers.mapping.presolve.intervals import OpenSpace, TableIntervals

Literal = Any  # a Boolean variable of ortools or its negation


class Decisions:
    """Literals of all decisions, and what depends on one group alone as a table over its rows.

    Parameters
    ----------
    left : the open rows and choices; nothing else can be decided
    limits : stating the problem ends with ``LimitReachedError`` where one strikes
    """

    def __init__(
        self, problem: LayerProblem, tables: Tables, left: OpenSpace, limits: Limits | None = None
    ) -> None:
        self.model = cp_model.CpModel()
        self.problem = problem
        self.tables = tables
        self.left = left
        self._limits = limits
        self._intervals = TableIntervals(tables, left.rows, _settled(problem, left))
        self._true = self.model.new_constant(1)
        self._false = ~self._true
        self.rows: list[list[Literal]] = []
        for rows in left.rows:
            # One literal per open row: tables of values are sums over them, exact whatever the expression.
            literals = [self.model.new_bool_var("") for _ in rows] if len(rows) > 1 else [self._true]
            if len(rows) > 1:
                self.model.add_exactly_one(literals)
            self.rows.append(literals)
        self.selectors: dict[Variable, dict[int, Literal]] = {
            selector: self._choose({chosen[i] for chosen in left.choices})
            for i, selector in enumerate(problem.space.selectors)
        }
        self._allow_choices()
        self._groups = {table.group.name: i for i, table in enumerate(tables.tables)}
        self._locals: dict[tuple[int, bytes], tuple[Any, int, int]] = {}
        self._subsets: dict[tuple[int, bytes], Literal] = {}
        self._values: dict[Expr, Floats] = {}
        for table, rows in zip(tables.tables, left.rows, strict=True):
            self._values |= {node: values[rows] for node, values in table.values.items()}

    def _choose(self, values: set[int]) -> dict[int, Literal]:
        """One literal per value, exactly one of them true."""
        ordered = sorted(values)
        if len(ordered) == 1:
            return {ordered[0]: self._true}
        if len(ordered) == 2:
            first = self.model.new_bool_var("")
            return {ordered[0]: first, ordered[1]: ~first}
        literals = {value: self.model.new_bool_var("") for value in ordered}
        self.model.add_exactly_one(literals.values())
        return literals

    def _allow_choices(self) -> None:
        """Combinations of choices that probing closed, and rows that do not go with a choice."""
        selectors = self.problem.space.selectors
        possible = 1
        for selector in selectors:
            possible *= len(self.selectors[selector])
        # Some combinations are closed although each of their values is open.
        if 1 < possible <= 4096 and len(self.left.choices) < possible:
            picks = []
            for chosen in self.left.choices:
                pick = self.model.new_bool_var("")
                for value, selector in zip(chosen, selectors, strict=True):
                    self.model.add_implication(pick, self.selectors[selector][value])
                picks.append(pick)
            self.model.add_exactly_one(picks)
        for literals, fits in zip(self.rows, self.left.fits, strict=False):
            for i, selector in enumerate(selectors):
                for value, literal in self.selectors[selector].items():
                    same = [n for n, chosen in enumerate(self.left.choices) if chosen[i] == value]
                    for row in np.flatnonzero(~fits[same].any(axis=0)):
                        self.model.add_bool_or([~literal, ~literals[row]])

    # -- what the reader asks ------------------------------------------------------------------------

    def choices(self, selector: Variable) -> MappingABC[int, Literal]:
        """A literal per open value."""
        return self.selectors[selector]

    def bounds(self, node: Expr) -> tuple[int, int]:
        """What intervals prove of an expression over all open rows and choices."""
        return self._intervals.whole_low(node), self._intervals.whole_high(node)

    def values(self, node: Expr) -> Floats:
        """A local expression at every open row of its group."""
        values = self._values.get(node)
        if values is None:
            position = self._groups[str(node.group)]
            group = self.tables.tables[position].group
            rows = group.rows[self.left.rows[position]].astype(np.float64)
            columns = {variable: rows[:, i] for i, variable in enumerate(group.variables)}
            values = self._values[node] = np.broadcast_to(BatchReader(columns).read(node), (len(rows),))
        return values

    def local(self, node: Expr) -> tuple[Any, int, int]:
        """A local expression as a linear expression with its bounds."""
        position = self._groups[str(node.group)]
        if np.abs(self.values(node)).max() >= EXACT_LIMIT:
            raise OverflowError("counts beyond 2**53: the layer is too large for exact tables")
        values = self.values(node).astype(np.int64)
        # Different expressions often have the same values at all rows: one encoding serves them.
        key = (position, values.tobytes())
        encoded = self._locals.get(key)
        if encoded is None:
            encoded = self._locals[key] = self._encode(position, values)
        return encoded

    def _encode(self, position: int, values: Int64s) -> tuple[Any, int, int]:
        if self._limits is not None:
            self._limits.check()
        distinct = [int(value) for value in np.unique(values)]
        low, high = distinct[0], distinct[-1]
        if low == high:
            return low, low, high
        # Two values need no variable, only the literal that distinguishes them.
        if len(distinct) == 2:
            literal = self.subset(position, values == high)
            return low + (high - low) * literal, low, high
        variable = self.model.new_int_var_from_domain(cp_model.Domain.from_values(distinct), "")
        parts = []
        for value in distinct:
            literal = self.subset(position, values == value)
            if high - low < WIDE:  # else the sum below says it alone
                self.model.add(variable == value).only_enforce_if(literal)
                self.model.add(variable != value).only_enforce_if(~literal)
            parts.append(value * literal)
        self.model.add(variable == sum(parts))
        return variable, low, high

    def where_local(self, node: Expr, holds: Callable[[Floats], Bools]) -> Literal:
        """A literal that is true where a local expression satisfies a predicate."""
        return self.subset(self._groups[str(node.group)], holds(self.values(node)))

    def subset(self, position: int, mask: Bools) -> Literal:
        """A literal that is true where the group's row is one of a set."""
        if mask.all():
            return self._true
        if not mask.any():
            return self._false
        key = (position, mask.tobytes())
        literal = self._subsets.get(key)
        if literal is None:
            # The complement of a known set is its literal negated.
            opposite = self._subsets.get((position, (~mask).tobytes()))
            literal = self._subsets[key] = self._new_subset(position, mask) if opposite is None else ~opposite
        return literal

    def _new_subset(self, position: int, mask: Bools) -> Literal:
        inside = [self.rows[position][row] for row in np.flatnonzero(mask)]
        outside = [self.rows[position][row] for row in np.flatnonzero(~mask)]
        if len(inside) == 1:
            return inside[0]
        if len(outside) == 1:
            return ~outside[0]
        literal = self.model.new_bool_var("")
        # Of the rows one is chosen: it lies inside, or the literal is false.
        self.model.add_exactly_one([~literal, *inside])
        return literal

    # -- logic ---------------------------------------------------------------------------------------

    def truth(self, value: bool) -> Literal:
        """A constant literal of the given truth value."""
        return self._true if value else self._false

    def is_true(self, literal: Literal) -> bool:
        return bool(literal.index == self._true.index)

    def is_false(self, literal: Literal) -> bool:
        return bool(literal.index == self._false.index)

    def conjunction(self, literals: Sequence[Literal]) -> Literal:
        """A literal that is true exactly where all given ones are."""
        parts = {literal.index: literal for literal in literals if not self.is_true(literal)}
        if any(self.is_false(literal) for literal in parts.values()):
            return self._false
        if not parts:
            return self._true
        if len(parts) == 1:
            return next(iter(parts.values()))
        result = self.model.new_bool_var("")
        for part in parts.values():
            self.model.add_implication(result, part)
        self.model.add_bool_or([result, *(~part for part in parts.values())])
        return result

    def reified(self, holds: Any, fails: Any) -> Literal:
        """A literal for a linear relation and its opposite."""
        result = self.model.new_bool_var("")
        self.model.add(holds).only_enforce_if(result)
        self.model.add(fails).only_enforce_if(~result)
        return result


def _settled(problem: LayerProblem, left: OpenSpace) -> dict[Variable, int]:
    """Selectors with one open value."""
    result: dict[Variable, int] = {}
    for index, selector in enumerate(problem.space.selectors):
        values = {chosen[index] for chosen in left.choices}
        if len(values) == 1:
            result[selector] = values.pop()
    return result
