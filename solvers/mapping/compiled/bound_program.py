"""Interval bounds as a program: the expressions of a problem laid out once, run for many nodes at a time.

The program computes what :class:`~tilewright.formulation.expression.interval.IntervalReader` reads, to the
last bit, but its instructions are compiled (:mod:`tilewright.solvers.mapping.compiled.bound_program_kernel`)
and work on blocks of nodes.  It is one program for all stages: a node's cell in an axis group is an index
into that group's tables, in which the cells of all stages follow each other, and choices that are still open
are an argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from functools import partial
from typing import assert_never

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.interval import NEVER_NEGATIVE
from tilewright.formulation.expression.nodes import (
    Choice,
    Constant,
    Function,
    IsOne,
    Maximum,
    Product,
    Quotient,
    Rounded,
    Sum,
    Tightened,
    Where,
    as_node,
)
from tilewright.formulation.limits import Limits, TablesTooLargeError
from tilewright.formulation.mapping.tiles.columns import Classes
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.mapping.compiled import opcodes
from tilewright.solvers.mapping.compiled.program import Runner
from tilewright.solvers.mapping.tables.staged_tables import Settled, StagedTable
from tilewright.solvers.mapping.tables.table_bank import Entry, TableBank

NONE = -1
_NO_ROWS = np.zeros(0, dtype=np.int32)
MOST_BYTES = 600_000_000
"""Of all that the trees of one search read: rows, cells, and what their programs have of these."""


class BoundProgram:
    """Lower bounds of some expressions for nodes, under limits.

    Parameters
    ----------
    staged : the tables of the axis groups
    limits : expressions with what they may reach
    roots : expressions whose lower bounds are asked for
    lower_bounds : of expressions, known another way
    owners : selectors whose choices have lower bounds of their own
    search_limits : ``LimitReachedError`` is raised where one strikes, and `TablesTooLargeError` where memory
        is short
    bank : holds the values that the program reads; by default they are the program's own
    room : bytes that rows, cells and all that is read of them may take

    Attributes
    ----------
    bytes : what they take
    table_bytes : of values that were not in the bank before
    selectors : choices that it reads, with their places
    length : instructions
    """

    def __init__(
        self,
        staged: Sequence[StagedTable],
        limits: Sequence[tuple[Expr, int]],
        roots: Sequence[Expr],
        lower_bounds: MappingABC[Expr, float],
        search_limits: Limits | None = None,
        owners: Sequence[Variable] = (),
        bank: TableBank | None = None,
        room: int | None = None,
    ) -> None:
        self._owners = tuple(owners)
        self._staged = staged
        self._position = {table.table.group.name: i for i, table in enumerate(staged)}
        self._known_bounds = lower_bounds
        self._code: list[int] = []
        self._arguments: list[tuple[int, int, int]] = []
        self._constants: list[float] = []
        self._lists: list[int] = []
        self.selectors: dict[Variable, int] = {}
        self._tables: list[tuple[int, Expr, bool, int | None, int]] = []  # group, what, stages, values
        self._loads: list[int] = []  # the instructions that read them
        # Slot, group, expression and values of each class, load by load.
        self._settled_values: list[tuple[int, int, Expr, Floats]] = []
        self._settled_loads: dict[Expr, int] = {}
        self._slots: dict[tuple[int, int, int], int] = {}  # by group, classes and stage
        self._slot_rows: list[tuple[int, int, Classes | None]] = []  # group, stage, classes of rows
        self._known: dict[tuple[Expr, bool], int] = {}
        self._emitted: dict[tuple[int, int, int, int, float], int] = {}  # by instruction
        self._positive: set[int] = set()  # registers of what is never negative
        self._lower_bounds: dict[Expr, int] = {}
        self._settled: dict[Expr, int] = {}
        # Registers are made in the order in which values are needed, so the code runs from the first to the
        # last.
        checks = [self._register(expr, True) for expr, _ in limits]
        wanted = [self._register(expr, True) for expr in roots]
        tables = [*self._tabulated()]
        by_row = [group for group, _, own in self._slot_rows if own is not None]
        self.bytes = (
            sum(table.bytes for table in staged)
            + sum(8 * size for _, _, size, _ in tables)
            + sum(4 * len(staged[group].table) for group in by_row)
        )
        if self.bytes > (MOST_BYTES if room is None else room):
            raise TablesTooLargeError("the tables of this order of decisions take too much memory")
        bank = bank or TableBank(exact=True)
        before = bank.bytes
        check = (lambda: None) if search_limits is None else search_limits.check
        values, starts = bank.placed(tables, check)
        self.table_bytes = bank.bytes - before
        for load, start in zip(self._loads, starts, strict=False):
            group, _, third = self._arguments[load]
            self._arguments[load] = (group, start, third)
        class_starts, classes = bank.joined(
            [None if own is None else own.of_row for *_, own in self._slot_rows]
        )
        row_starts, first_rows = bank.joined(
            [table.first_rows if self._slots else _NO_ROWS for table in staged]
        )
        laid_out = opcodes.Program(
            np.array(self._code, dtype=np.int64),
            np.array(self._arguments, dtype=np.int64).reshape(-1, 3),
            np.array(self._constants, dtype=np.float64),
            np.array(self._lists, dtype=np.int64),
            values,
            np.array(
                [
                    (slot, start)
                    for (slot, *_), start in zip(
                        self._settled_values, starts[len(self._tables) :], strict=True
                    )
                ],
                dtype=np.int64,
            ).reshape(-1, 2),
            np.array(
                [
                    (group, stage, start)
                    for (group, stage, _), start in zip(self._slot_rows, class_starts, strict=True)
                ],
                dtype=np.int64,
            ).reshape(-1, 3),
            classes,
            first_rows,
            np.array(row_starts, dtype=np.int64),
            np.array(checks, dtype=np.int64),
            np.array([float(bound) for _, bound in limits]),
            np.array(wanted, dtype=np.int64),
        )
        self._tables.clear()
        self._settled_values.clear()
        self._slot_rows.clear()
        # Raising a bound changes one constant of the program that is laid out; nothing is compiled or copied
        # anew.
        self._raised: dict[tuple[int, ...], Floats] = {(): laid_out.constants}
        self._runners = [Runner(laid_out, len(staged))]
        self.length = len(self._code)

    def has_raisable_bound(self, expr: Expr) -> bool:
        """Whether an expression has a known bound and a register of its own, not only a place in a table."""
        return expr in self._lower_bounds

    def raise_lower_bound(self, expr: Expr, value: float, chosen: MappingABC[Variable, int]) -> None:
        """Raise the known lower bound of an expression where the owners' options are these."""
        # A bound that was learned under one storage says nothing of another, so each has its constants.
        constants = self._raised.setdefault(self._owner(chosen), self._raised[()].copy())
        place = self._lower_bounds[expr]
        constants[place] = max(constants[place], value)
        for runner in self._runners:
            runner.owner = None

    def _owner(self, chosen: MappingABC[Variable, int]) -> tuple[int, ...]:
        """The options whose lower bounds count; empty while some owner is open."""
        chosen_of = tuple(chosen.get(variable, NONE) for variable in self._owners)
        return (*chosen_of, NONE) if NONE not in chosen_of else ()

    def runner(self, chosen: MappingABC[Variable, int], thread: int = 0) -> Runner:
        """What runs the program under some choices, with what is known under their storage.

        Parameters
        ----------
        chosen : options of selectors; those of storage count
        thread : number of the thread that runs it
        """
        runner, owner = self._runners[thread], self._owner(chosen)
        # Consecutive calls mostly have one owner: the copy is made only where it changes.
        if owner != runner.owner:
            runner.program.constants[:] = self._raised.get(owner, self._raised[()])
            runner.owner = owner
        return runner

    def provide(self, thread: int) -> None:
        """Have a runner for every thread up to this number."""
        while len(self._runners) <= thread:
            self._runners.append(self._runners[0].another())

    def bounds(
        self, cells: Int64s, at: Sequence[int], chosen: MappingABC[Variable, int]
    ) -> tuple[Int64s, Floats]:
        """Nodes that may satisfy all limits, and the roots' lower bounds there.

        Parameters
        ----------
        cells : cell of each node in each group, shape (groups, nodes)
        at : the stage that the cells of each group belong to, -1 for the whole group
        chosen : options of the selectors that are decided
        """
        selected = np.array([chosen.get(variable, NONE) for variable in self.selectors], dtype=np.int64)
        bases = np.array(
            [table.offsets[stage + 1] for table, stage in zip(self._staged, at, strict=True)], dtype=np.int64
        )
        return self.runner(chosen).bounds(cells, bases, np.array(at, dtype=np.int64), selected)

    def _emit(self, operation: int, a: int = NONE, b: int = NONE, third: int = NONE, c: float = 0.0) -> int:
        instruction = operation, a, b, third, c
        register = self._emitted.get(instruction, NONE)
        if register >= 0:
            return register  # products of several levels begin with the same factors
        self._code.append(operation)
        self._arguments.append((a, b, third))
        self._constants.append(c)
        register = len(self._code) - 1
        # Places of loads are filled in later, and constants of known bounds are raised one by one.
        if operation not in (opcodes.LOAD, opcodes.AT_LEAST):
            self._emitted[instruction] = register
        if self._is_never_negative(operation, a, b, third, c):
            self._positive.add(register)
        return register

    def _is_never_negative(self, operation: int, a: int, b: int, third: int, c: float) -> bool:
        """Whether an instruction's value cannot be negative, given what it reads."""
        positive = self._positive
        match operation:
            case opcodes.LOAD:
                return False  # its values tell
            case opcodes.CONSTANT:
                return c >= 0
            case opcodes.ADD_SCALED:
                return c >= 0 and a in positive and b in positive
            case opcodes.ADD_CONSTANT | opcodes.SCALE:
                return c >= 0 and a in positive
            case opcodes.TIMES | opcodes.SMALLER:
                return a in positive and b in positive
            case opcodes.TIMES_CLAMPED | opcodes.ROUND:
                return a in positive
            case opcodes.CLAMP | opcodes.ONE_AT_MOST:
                return True
            case opcodes.LARGER:
                return a in positive or b in positive
            case opcodes.AT_LEAST:
                return c >= 0 or a in positive
            case opcodes.WHERE_LOW | opcodes.WHERE_HIGH:
                return b in positive and third in positive
            case opcodes.CHOICE_LOW | opcodes.CHOICE_HIGH:
                return all(register in positive for register in self._lists[a : a + b])
            case _:
                return False

    def _register(self, expr: Expr, low: bool) -> int:
        """The register of the lower or upper bound of an expression."""
        register = self._known.get((expr, low))
        if register is None:
            # What depends on one axis group alone is tabulated per cell, however deep the expression.
            register = self._load(expr, low) if expr.group is not None else self._read(expr, low)
            known = self._known_bounds.get(expr) if low else None
            if known is not None:
                register = self._lower_bounds[expr] = self._emit(opcodes.AT_LEAST, register, c=known)
            self._known[expr, low] = register
        return register

    def _load(self, expr: Expr, low: bool) -> int:
        assert expr.group is not None
        position = self._position[expr.group]
        settled = self._staged[position].settled(expr)
        number = self._settled_loads.get(expr)
        if number is None:
            number = self._settled_loads[expr] = self._settled_load(position, expr, settled)
        stages = None if settled is None else settled.stage
        staged = self._staged[position]
        self._tables.append((position, expr, low, stages, staged.size(stages)))
        register = self._emit(opcodes.LOAD, position, third=number)
        self._loads.append(register)
        if staged.is_never_negative(expr):
            self._positive.add(register)
        return register

    def _tabulated(self) -> Iterator[Entry]:
        """The tables of all loads."""
        for position, expr, low, stages, size in self._tables:
            staged = self._staged[position]
            yield staged, (expr, low, stages), size, partial(staged.bounds, expr, low, stages)
        for _, position, expr, values in self._settled_values:
            yield self._staged[position], expr, len(values), partial(np.copyto, src=values)

    def _settled_load(self, position: int, expr: Expr, settled: Settled | None) -> int:
        """The number of a load of what an expression comes to once it is decided; ``NONE`` without one."""
        if settled is None:
            return NONE
        slot = self._slots.setdefault((position, id(settled.classes), settled.stage), len(self._slots))
        if slot == len(self._slot_rows):
            self._slot_rows.append((position, settled.stage, settled.classes))
        self._settled_values.append((slot, position, expr, settled.values))
        return len(self._settled_values) - 1

    def _read(self, expr: Expr, low: bool) -> int:
        node = as_node(expr)
        match node:
            case Constant():
                return self._emit(opcodes.CONSTANT, c=float(node.value))
            case Variable():
                return self._emit(
                    opcodes.SELECTED, self._selector(node), c=float(node.domain[0 if low else -1])
                )
            case Sum():
                return self._sum(node, low)
            case Product():
                return self._product(node, low)
            case Quotient():
                # A quotient falls with its denominator, so the other end of that is read.
                over = self._register(node.numerator, low)
                return self._emit(opcodes.CEIL_QUOTIENT, over, self._register(node.denominator, not low))
            case Maximum():
                return self._fold(opcodes.LARGER, [self._register(part, low) for part in node.arguments])
            case IsOne():
                return self._emit(opcodes.ONE_AT_MOST, self._register(node.argument, not low))
            case Where():
                condition = self._condition(node.condition)
                then, otherwise = self._register(node.then, low), self._register(node.otherwise, low)
                operation = opcodes.WHERE_LOW if low else opcodes.WHERE_HIGH
                return self._emit(operation, condition, then, otherwise)
            case Choice():
                options = [self._register(option, low) for option in node.options]
                start = len(self._lists)
                self._lists += options
                operation = opcodes.CHOICE_LOW if low else opcodes.CHOICE_HIGH
                return self._emit(operation, start, len(options), self._selector(node.selector))
            case Function():
                raise TypeError(f"the function {node.name} spans several axis groups")
            case Rounded():
                return self._emit(
                    opcodes.ROUND, self._register(node.argument, low), c=float(node.denominator)
                )
            case Tightened():
                inner = self._register(node.argument, low)
                if low:
                    return self._emit(opcodes.LARGER, inner, self._register(node.lower, True))
                return (
                    inner if node.upper is None else self._emit(opcodes.AT_MOST, inner, c=float(node.upper))
                )
            case _:
                assert_never(node)

    def _selector(self, variable: Variable) -> int:
        return self.selectors.setdefault(variable, len(self.selectors))

    def _sum(self, expr: Sum, low: bool) -> int:
        (coefficient, term), *rest = expr.terms
        summed = self._emit(
            opcodes.SCALE, self._register(term, low == (coefficient > 0)), c=float(coefficient)
        )
        for coefficient, term in rest:
            register = self._register(term, low == (coefficient > 0))
            summed = self._emit(opcodes.ADD_SCALED, summed, register, c=float(coefficient))
        return self._emit(opcodes.ADD_CONSTANT, summed, c=float(expr.constant)) if expr.constant else summed

    def _product(self, expr: Product, low: bool) -> int:
        """Factors are never negative, but the bounds of a difference, or of a case of differences, may be."""
        first, *rest = expr.factors
        register_so_far = self._register(first, low)
        if not self._is_positive(first, register_so_far):
            register_so_far = self._emit(opcodes.CLAMP, register_so_far)
        for factor in rest:
            register = self._register(factor, low)
            # Clamping every factor would be right too; it is left out where the factor cannot be negative.
            operation = opcodes.TIMES if self._is_positive(factor, register) else opcodes.TIMES_CLAMPED
            register_so_far = self._emit(operation, register_so_far, register)
        return register_so_far

    def _is_positive(self, factor: Expr, register: int) -> bool:
        return isinstance(factor, NEVER_NEGATIVE) or register in self._positive

    def _fold(self, operation: int, registers: Sequence[int]) -> int:
        folded = registers[0]
        for register in registers[1:]:
            folded = self._emit(operation, folded, register)
        return folded

    def _condition(self, expr: Expr) -> int:
        settled = self._settled.get(expr)
        if settled is None:
            low, high = self._register(expr, True), self._register(expr, False)
            settled = self._settled[expr] = self._emit(opcodes.SETTLED, low, high)
        return settled
