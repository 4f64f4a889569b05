"""What a search of the tree reads: its decisions in stages, its limits, and the program that bounds nodes.

A layout is put together once for a problem (:func:`laid_out`).  Searches for parts of the energy alone take
another one from it, with fewer limits, in their own stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.relaxation import legal_groups
from tilewright.formulation.mapping.tables import Tables
from tilewright.solvers.mapping import program
from tilewright.solvers.mapping.array_bounds import ArrayBounds, array_rooms
from tilewright.solvers.mapping.bound_program import BoundProgram
from tilewright.solvers.mapping.stages import STORAGE, Stage, StagedTable, stages_of


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
    floors : lower bounds of expressions that are known another way
    fits : whether tile sizes and array leave anything to choose
    heeded : ``LimitReachedError`` is raised where one of these strikes
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

    @cached_property
    def bound_program(self) -> BoundProgram:
        """The program; it keeps what is learned of floors."""
        limits = [(limit.expr, limit.bound) for limit in self.limits]
        roots = [root for root in (self.energy, self.cycles) if root is not None]
        return BoundProgram(self.staged, limits, roots, self.lower_bounds, self.checked_limits, self.owners)

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
        """The same with the energy written as a sum in which some terms have floors."""
        for staged in self.staged:
            staged.table.values.update(staged.table.missing([energy], self.checked_limits))
        read = None if self.energy is None else energy
        return replace(self, energy=read, lower_bounds={**self.lower_bounds, **dict.fromkeys(terms, 0.0)})

    def of_part(self, energy: Expr, limits: Sequence[Limit], stages: Sequence[Stage]) -> Layout:
        """That of a search for the least value of a part of the energy."""
        staged = self.staged
        if stages is not self.stages:
            nest, roots = self.problem.space.nest, [energy, *(limit.expr for limit in limits)]
            tables = (staged_table.table.reading(roots, self.checked_limits) for staged_table in staged)
            staged = [StagedTable(table, nest, stages) for table in tables]
        return replace(
            self, stages=stages, staged=staged, limits=limits, energy=energy, cycles=None, powers=(1, 0)
        )


def laid_out(problem: LayerProblem, checked_limits: Limits, both: bool = False) -> Layout:
    """The layout of a problem; raises ``LimitReachedError`` where a limit strikes before.

    Parameters
    ----------
    both : whether energy and cycles are read even where the objective has only one of them
    """
    space, statement = problem.space, problem.statement
    rooms = array_rooms(space.nest)
    limits = (*problem.limits, *rooms)
    if not program.await_compiled(lambda: checked_limits.expired):
        raise LimitReachedError
    groups = legal_groups(problem, checked_limits)
    roots = [statement.energy, statement.cycles]
    tables = Tables(groups, [*roots, *(limit.expr for limit in limits)], checked_limits)
    powers = problem.objective.key_powers
    # networks and DMA decide the costs of perfect-only models: neither order prunes more there
    known = not problem.model.perfect_only
    stages = stages_of(space, known and powers[1] > 0, known and not powers[1])
    array = ArrayBounds(space.nest, tables, checked_limits.check)
    staged: list[StagedTable] = []
    for table in tables.tables:
        checked_limits.check()
        staged.append(StagedTable(table, space.nest, stages))
    return Layout(
        problem=problem,
        stages=stages,
        staged=staged,
        limits=limits,
        machine=(*statement.limits, *rooms),
        energy=statement.energy if powers[0] or both else None,
        cycles=statement.cycles if powers[1] or both else None,
        powers=powers,
        lower_bounds=array.bounds(roots),
        fits=array.fits,
        checked_limits=checked_limits,
    )
