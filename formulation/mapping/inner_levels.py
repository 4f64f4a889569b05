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

from tilewright.formulation.expression import maximum, total
from tilewright.formulation.mapping.constraints import Constraints
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits, whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.remainders import MergedCuts
from tilewright.formulation.mapping.space import build_space
from tilewright.formulation.mapping.storage_cycles import Place, own_cycles
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
    problem: LayerProblem, first: int, known: MappingABC[int, float], inside: float = 0.0
) -> LayerProblem:
    """A problem whose mappings have the objective keys of the whole's with their tiles, or lower ones.

    Energy is that of some level and all inside it, and what levels outside cost at least; cycles are those
    of the same levels.

    Parameters
    ----------
    first : the level, of :func:`firsts`
    known : what each level costs at least, pJ
    inside : what all levels inside the first one cost at least together, pJ
    """
    operator, model, levels = problem.operator, problem.model, problem.engine.levels
    assert isinstance(model, Hierarchy)
    engine, scale = _machine(problem, first), problem.statement.energy_scale
    space = build_space(operator, engine, partial(model.orders, operator, engine), (), problem.space.tiles)
    nest: Nest = space.nest if space.nest.perfect else MergedCuts.of(space.nest, 0)
    by_store = model.energy_by_store(nest)
    last = nest.temporal[-1]
    unit = scale // model.scale_of(engine)
    costs, times = [], []
    for level, place in zip(range(first, len(levels)), nest.temporal[1:], strict=True):
        spent = total(part for at, part in by_store.items() if min(at, last) == place)
        costs.append(maximum([unit * spent, int(known[level] * scale)]))
        sources = {
            name: Place(source, max(0, source - first + 1)) for name, source in _sources(problem, level).items()
        }
        times.append(own_cycles(problem.engine, nest, Place(level, level - first + 1), sources))
    cycles = total(times)
    outer, *inner = costs
    together = maximum([total(inner), int(inside * scale)])
    outside = sum(int(known[level] * scale) for level in range(1, first))
    energy = total([outer, together, outside, whole(problem.engine.leak, scale) * cycles])
    limits = (*capacity_limits(nest), *array_limits(nest))
    return replace(
        problem,
        engine=engine,
        constraints=Constraints(),
        space=replace(space, nest=nest),
        statement=Statement(energy, scale, cycles, limits, {"inner levels": energy}, scale),
        limits=limits,
        alike=None,
    )


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
