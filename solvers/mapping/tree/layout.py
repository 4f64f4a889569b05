"""What a search of the tree reads: its decisions in stages, its limits, and the program that bounds nodes.

A layout is put together once for a problem (:func:`laid_out`).  Searches for parts of the energy alone take
another one from it, with fewer limits, in their own stages.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np

from tilewright.formulation.effort import Tally
from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nests.exchange import exchangeable_axes, exchangeable_groups, sides
from tilewright.formulation.mapping.nests.idle_orders import idle_order_limits
from tilewright.formulation.mapping.parts.relaxation import wanted_rows
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import MapSpace
from tilewright.foundation.arrays import Indices, among
from tilewright.solvers.mapping.compiled import program
from tilewright.solvers.mapping.compiled.bound_program import BoundProgram
from tilewright.solvers.mapping.compiled.descent_state import Decisions, decisions_of
from tilewright.solvers.mapping.tables.array_bounds import ArrayBounds, implied_array_limits
from tilewright.solvers.mapping.tables.shared_tables import SharedTables
from tilewright.solvers.mapping.tables.staged_tables import StagedTable, decisive, settled_cells
from tilewright.solvers.mapping.tables.stages import STORAGE, Stage, inner_stages, outer_stages, stages_of
from tilewright.solvers.mapping.tables.table_bank import TableBank
from tilewright.solvers.mapping.tree.goals import Goal

_MANY = 10_000  # rows from which on it is worth knowing which are wanted
MOST_TOGETHER = 2_000_000
"""Rows of all groups with which several tables of them fit into memory: of two orders, or of parts."""
_MOST_HELD = 100_000_000  # bytes of values of rows that are kept for later searches of the same tables


@dataclass(frozen=True)
class Layout:
    """A problem, or one part of its energy, as a search reads it.

    Parameters
    ----------
    stages : in which decisions are made
    staged : tables of the axis groups, in these stages
    limits : what closes a node that breaks it
    machine : those of the problem's limits that the machine sets, whatever the user demands
    energy, cycles : what nodes are bounded by; ``None`` for what nobody asks for
    powers : of energy and cycles in the key
    lower_bounds : of expressions, known another way
    fits : whether tile sizes and array leave anything to choose
    checked_limits : ``LimitReachedError`` is raised where one of these strikes
    exchangeable : pairs of groups whose tiles may change places, with the same tables
    axes : pairs of axes of an array that may change places, by their blocks
    bank : holds what bound programs read
    room : bytes that rows, cells and a program may take
    shares : whether other layouts read the same tables
    tally : counts nodes and tables
    """

    problem: LayerProblem
    stages: Sequence[Stage]
    staged: Sequence[StagedTable]
    limits: Sequence[Limit]
    machine: Sequence[Limit]
    energy: Expr | None
    cycles: Expr | None
    powers: tuple[int, int]
    lower_bounds: MappingABC[Expr, float]
    fits: bool
    checked_limits: Limits
    exchangeable: Sequence[tuple[int, int]] = ()
    axes: Sequence[tuple[int, int]] = ()
    bank: TableBank = field(default_factory=partial(TableBank, exact=True))
    room: int | None = None
    shares: bool = False
    tally: Tally = field(default_factory=Tally)

    @cached_property
    def bound_program(self) -> BoundProgram:
        """The program; it keeps what is learned of lower bounds.

        Where a bank keeps what programs read, or where they are many, values of rows that no other layout
        reads are dropped once it is there: few searches need them again.
        """
        limits = [(limit.expr, limit.bound) for limit in self.limits]
        roots = [root for root in (self.energy, self.cycles) if root is not None]
        laid = BoundProgram(
            self.staged,
            limits,
            roots,
            self.lower_bounds,
            self.checked_limits,
            self.owners,
            self.bank,
            self.room,
        )
        self.tally.table_bytes += laid.table_bytes
        held = sum(staged.table.values.bytes for staged in self.staged)
        if not self.shares and (not self.bank.exact or held > _MOST_HELD):
            self.drop_values()
        return laid

    @cached_property
    def selectors(self) -> tuple[Variable, ...]:
        """All choices, those of the stages first."""
        of_stages = (selector for stage in self.stages for selector in stage.selectors)
        return tuple(dict.fromkeys([*of_stages, *self.bound_program.selectors]))

    @cached_property
    def decisions(self) -> Decisions:
        """What the stages decide, as the compiled loop reads it."""
        return decisions_of(
            self.staged,
            self.stages,
            self.selectors,
            self.bound_program.selectors,
            self.powers,
            (self.energy is not None, self.cycles is not None),
        )

    @cached_property
    def decisions_once(self) -> Decisions:
        """The same without mappings that exchanged groups make of others."""
        decisions = self.decisions.without_exchanged(self.exchangeable)
        nest, paired = self.problem.space.nest, {*chain.from_iterable(self.exchangeable)}
        for pair in self.axes:
            settled = settled_cells(self.staged, [sides(nest, own.table.group, pair) for own in self.staged])
            if settled is not None:
                decisions = decisions.without_turned(*settled, paired)
        return decisions

    @property
    def bytes(self) -> int:
        """Memory of its rows and cells, without what a bound program reads."""
        return sum(staged.bytes for staged in self.staged)

    def drop_values(self) -> None:
        """Forget values of rows; a bound program keeps what it reads, and a division computes its own."""
        for staged in self.staged:
            staged.drop_values()

    @property
    def owners(self) -> tuple[Variable, ...]:
        """The choices of storage."""
        return self.stages[0].selectors if self.stages[0].name == STORAGE else ()

    def storage(self, chosen: MappingABC[Variable, int]) -> dict[Variable, int] | None:
        """The storage among some choices; ``None`` while it is open."""
        if any(variable not in chosen for variable in self.owners):
            return None
        return {variable: chosen[variable] for variable in self.owners}

    def dividing(self, energy: Expr, terms: Iterable[Expr]) -> Layout:
        """The same with the energy written as a sum in which some terms have known lower bounds."""
        others = (self.cycles, *(limit.expr for limit in self.limits))
        self._tabulate([energy, *(root for root in others if root is not None)])
        read = None if self.energy is None else energy
        return replace(self, energy=read, lower_bounds={**self.lower_bounds, **dict.fromkeys(terms, 0.0)})

    def _tabulate(self, roots: Sequence[Expr]) -> None:
        """Have the values of rows that some expressions read."""
        for staged in self.staged:
            staged.table.values.update(staged.table.missing(roots, self.checked_limits))

    def of_part(self, energy: Expr, limits: Sequence[Limit], stages: Sequence[Stage]) -> Layout:
        """That of a search for the least value of a part of the energy."""
        staged = self.staged
        roots = [energy, *(limit.expr for limit in limits)]
        if stages is self.stages:
            self._tabulate(roots)
        else:
            nest = self.problem.space.nest
            tables = (staged_table.table.reading(roots, self.checked_limits) for staged_table in staged)
            check = self.checked_limits.check
            stages, staged = decisive([StagedTable(table, nest, stages, check) for table in tables], stages)
        return replace(
            self,
            stages=stages,
            staged=staged,
            limits=limits,
            energy=energy,
            cycles=None,
            powers=(1, 0),
            exchangeable=self.exchangeable if staged is self.staged else [],
            axes=self.axes if staged is self.staged else [],
            bank=TableBank(exact=True),
        )


@dataclass(frozen=True, slots=True)
class Deciding:
    """In which order decisions are made, as :func:`stages_of` takes it.

    Parameters
    ----------
    spread_first : whether spatial splits are decided before all tiles
    inner_first : whether a tile inside an array is decided before what is spread
    stores : boundaries of stores whose tiles are decided before all others, with the loops around them, in
        place of all that
    """

    spread_first: bool = False
    inner_first: bool = False
    stores: tuple[int, ...] = ()

    def stages(self, space: MapSpace) -> list[Stage]:
        """The stages of a space."""
        if self.stores:
            nest = space.nest
            return [*outer_stages(nest, self.stores), *inner_stages(nest, self.stores[-1])]
        return stages_of(space, self.spread_first, self.inner_first)


def orders_of_decisions(problem: LayerProblem) -> list[Deciding]:
    """The orders of decisions that are worth trying on a problem, the most promising one first."""
    # networks and DMA decide the costs of perfect-only models: no order prunes more there
    if problem.model.perfect_only:
        return [Deciding()]
    if not problem.objective.key_powers[1]:
        return [Deciding(inner_first=True)]
    orders = [Deciding(spread_first=True), Deciding(inner_first=True)]
    return orders if problem.space.nest.spatial else orders[:1]


class LegalTables:
    """What layouts of a problem read, in any order and for any objective.

    Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    shared : what other problems read, too
    every_order : whether orders stay that keep nothing in place: more may be moved by them than is stored

    Attributes
    ----------
    problem : whose tables these are
    tables : of the rows that may be legal
    limits : of the problem, what they imply for whole arrays, and of orders that keep nothing in place
    shares : whether other problems read them
    """

    def __init__(
        self,
        problem: LayerProblem,
        checked_limits: Limits,
        shared: SharedTables | None = None,
        every_order: bool = False,
    ) -> None:
        nest = problem.space.nest
        self.fanout_limits = implied_array_limits(nest)
        idle = () if every_order else idle_order_limits(problem)
        self.limits = (*problem.limits, *self.fanout_limits, *idle)
        self.shares, self._shared = shared is not None, shared or SharedTables()
        groups = self._shared.legal(problem, checked_limits)
        self.tables = self._shared.tables(groups, self._roots(problem), checked_limits)
        self.problem, self._nest, self._checked_limits = problem, nest, checked_limits

    def _roots(self, problem: LayerProblem) -> list[Expr]:
        statement = problem.statement
        return [statement.energy, statement.cycles, *(limit.expr for limit in self.limits)]

    @cached_property
    def array(self) -> ArrayBounds:
        """Bounds of what shares the array."""
        return self._shared.array(self._nest, self.tables, self._checked_limits)

    def staged(self, stages: Sequence[Stage]) -> tuple[list[Stage], list[StagedTable]]:
        """The stages among some that decide anything, and the tables in these."""
        return self._shared.staged(self.tables, self._nest, stages, self._checked_limits)

    def wanted(self, goal: Goal) -> LegalTables:
        """The same without rows that a goal does not want, where they are many: it never will want them."""
        if sum(self.tables.sizes) <= _MANY:
            return self
        return self.restricted(wanted_rows(self.problem, self.tables, goal.wanted, self._checked_limits))

    def restricted(self, rows: Sequence[Indices]) -> LegalTables:
        """The same over some rows of every group only."""
        result = copy.copy(self)
        result.__dict__.pop("array", None)
        result.tables = self._shared.restricted(self.tables, rows)
        return result

    def exchangeable(self, pairs: Iterable[tuple[int, int]]) -> LegalTables:
        """The same over rows that both groups of every pair have: what one cannot use, neither can the other.

        Parameters
        ----------
        pairs : groups whose tiles may change places, by their places
        """
        kept = [np.arange(len(table)) for table in self.tables.tables]
        pairs = [*pairs]
        for first, second in (*pairs, *reversed(pairs)):
            own, other = (self.tables.tables[place].group.rows[kept[place]] for place in (first, second))
            kept[first], kept[second] = kept[first][among(own, other)], kept[second][among(other, own)]
        return self.restricted(kept)


def laid_out(
    problem: LayerProblem,
    checked_limits: Limits,
    goal: Goal | None = None,
    bank: TableBank | None = None,
    deciding: Deciding | None = None,
    tally: Tally | None = None,
    legal: LegalTables | None = None,
    stages: Sequence[Stage] | None = None,
    room: int | None = None,
) -> Layout:
    """The layout of a problem; raises ``LimitReachedError`` where a limit strikes before.

    Parameters
    ----------
    goal : tells whether energy and cycles are read even where the objective has only one of them, and which
        rows of large tables are wanted, unless these are given
    bank : keeps what the bound programs of several layouts read
    deciding : in which order; by default the most promising one
    tally : counts nodes and tables, if anybody asks for them
    legal : the problem's tables, where several layouts share them
    stages : in which decisions are made, where no order of all of them says so
    room : bytes that rows, cells and the program may take, where others are held
    """
    space, statement = problem.space, problem.statement
    if not program.await_compiled(lambda: checked_limits.expired):
        raise LimitReachedError
    if legal is None:
        legal = LegalTables(problem, checked_limits)
        legal = legal if goal is None else legal.wanted(goal)
    pairs = exchangeable_groups(problem)
    if pairs:
        legal = legal.exchangeable(pairs)
    powers, both = problem.objective.key_powers, goal is not None and goal.both
    if stages is None:
        deciding = deciding or orders_of_decisions(problem)[0]
        stages = deciding.stages(space)
    stages, staged = legal.staged(stages)
    return Layout(
        problem=problem,
        stages=stages,
        staged=staged,
        limits=legal.limits,
        machine=(*statement.limits, *legal.fanout_limits),
        energy=statement.energy if powers[0] or both else None,
        cycles=statement.cycles if powers[1] or both else None,
        powers=powers,
        lower_bounds=legal.array.bounds([statement.energy, statement.cycles]),
        fits=legal.array.fits,
        checked_limits=checked_limits,
        axes=exchangeable_axes(problem),
        exchangeable=[pair for pair in pairs if staged[pair[0]].has_cells_of(staged[pair[1]])],
        bank=bank or TableBank(exact=True),
        room=room,
        shares=legal.shares,
        tally=tally or Tally(),
    )
