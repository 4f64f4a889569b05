"""Problems of the innermost levels of a machine, for which all levels outside them are one.

A part of a storage pattern is what one level costs (:mod:`tilewright.formulation.mapping.storage_parts`).
What several levels cost together is more than the sum of their least: a tile that one of them reuses well is
moved often by another one.  As in a part, one block of loops stands for those of all levels outside
(``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import replace
from fractions import Fraction
from functools import partial

from tilewright.formulation.expression import Expr, maximum, total
from tilewright.formulation.mapping.cost.base import whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.remainders import MergedCuts
from tilewright.formulation.mapping.space import Alike, MapSpace, build_space
from tilewright.formulation.mapping.storage_cycles import Place, own_cycles
from tilewright.formulation.mapping.storage_parts import energy_problem
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role


def firsts(problem: LayerProblem) -> range:
    """The levels from which inwards there are such problems of two levels and more, but not of all.

    Every tensor is stored in the same levels in all mappings, and no array is further outside than next to
    those levels.
    """
    residency, levels = problem.space.nest.residency, problem.engine.levels
    if any(len(stores.alternatives) > 1 for stores in residency.values()):
        return range(0)
    array = next((index for index, level in enumerate(levels) if level.fanout is not None), len(levels))
    return range(min(len(levels) - 2, array + 1), 1, -1)


def inner_problem(
    problem: LayerProblem,
    first: int,
    weight: Fraction,
    known: MappingABC[int, float],
    inside: float,
    alike: Alike | None = None,
) -> LayerProblem:
    """A problem of energy that no mapping spends less than on the stores of some level and all inside it.

    Parameters
    ----------
    first : the level, of :func:`firsts`
    weight : what each of these levels' own cycles costs besides, pJ
    known : what each level costs at least, pJ
    inside : what all levels inside the first one cost at least together, pJ
    alike : spaces of other parts of the same operator, which share decisions with this one
    """
    model = problem.model
    assert isinstance(model, Hierarchy)
    engine = _machine(problem, first)
    space = _space(problem, engine, alike)
    nest, scale = space.nest, model.scale_of(engine) * weight.denominator
    outer, *inner = [
        maximum([weight.denominator * spent + int(weight * scale) * own, int(known[level] * scale)])
        for level, spent, own in _levels(problem, first, nest)
    ]
    energy = total([outer, maximum([total(inner), int(inside * scale)])])
    return energy_problem(problem, engine, space, energy, scale, alike)


def inner_key_problem(problem: LayerProblem, first: int, known: MappingABC[int, float]) -> LayerProblem:
    """A problem whose mappings have the objective keys of the whole's with their tiles, or lower ones.

    Energy is that of some level and all inside it, and what levels outside cost at least; cycles are those
    of the same levels.

    Parameters
    ----------
    first : the level, of :func:`firsts`
    known : what each level costs at least, pJ
    """
    model, scale = problem.model, problem.statement.energy_scale
    assert isinstance(model, Hierarchy)
    engine = _machine(problem, first)
    space = _space(problem, engine)
    nest, unit = space.nest, scale // model.scale_of(engine)
    levels = _levels(problem, first, nest)
    cycles = total(own for _, _, own in levels)
    costs = [maximum([unit * spent, int(known[level] * scale)]) for level, spent, _ in levels]
    outside = sum(int(known[level] * scale) for level in range(1, first))
    energy = total([*costs, outside, whole(problem.engine.leak, scale) * cycles])
    part = energy_problem(problem, engine, space, energy, scale)
    statement = replace(part.statement, cycles=cycles)
    return replace(part, objective=problem.objective, statement=statement)


def _space(problem: LayerProblem, engine: Engine, alike: Alike | None = None) -> MapSpace:
    """The tiles of a machine of inner levels, in which one cut stands for all outside."""
    operator = problem.operator
    orders = partial(problem.model.orders, operator, engine)
    space = build_space(operator, engine, orders, (), problem.space.tiles, alike=alike)
    return space if space.nest.perfect else replace(space, nest=MergedCuts.of(space.nest, 0))


def _levels(problem: LayerProblem, first: int, nest: Nest) -> list[tuple[int, Expr, Expr]]:
    """Some level and all inside it: each with its energy, in units of its machine, and its own cycles."""
    model = problem.model
    assert isinstance(model, Hierarchy)
    by_store, last = model.energy_by_store(nest), nest.temporal[-1]
    levels: list[tuple[int, Expr, Expr]] = []
    for level, place in zip(range(first, len(problem.engine.levels)), nest.temporal[1:], strict=True):
        spent = total(part for at, part in by_store.items() if min(at, last) == place)
        sources = {
            name: Place(source, max(0, source - first + 1))
            for name, source in _sources(problem, level).items()
        }
        own = own_cycles(problem.engine, nest, Place(level, level - first + 1), sources)
        levels.append((level, spent, own))
    return levels


def _sources(problem: LayerProblem, level: int) -> dict[str, int]:
    """By name of the tensors that a level stores, the level that each comes from."""
    sources: dict[str, int] = {}
    for name, residency in problem.space.nest.residency.items():
        (stores,) = residency.alternatives
        outside = [store for store in stores if store < level]
        if level in stores and outside:
            sources[name] = outside[-1]
    return sources


def _machine(problem: LayerProblem, first: int) -> Engine:
    """One level for all outside the first one, with the energies of what tensors come from, and the rest."""
    engine = problem.engine
    sources: dict[Role, MemoryLevel] = {}
    for tensor in problem.operator.tensors:
        (stores,) = problem.space.nest.residency[tensor.name].alternatives
        outside = max(store for store in stores if store < first)
        sources[tensor.role] = engine.levels[outside]
    outermost = MemoryLevel(
        "all outside",
        None,
        Fraction(0),
        Fraction(0),
        keeps=frozenset(Role),
        fanout=engine.levels[first - 1].fanout,
        read_energies={role: level.read_energy_of(role) for role, level in sources.items()},
        write_energies={role: level.write_energy_of(role) for role, level in sources.items()},
    )
    return replace(engine, levels=(outermost, *engine.levels[first:]))
