"""Problems of single stores, which bound the energy of all storage patterns at once.

A *storage pattern* says which levels store each tensor.  Its energy is a sum over levels, what moves into
the stores there, and what the PEs read (:meth:`Hierarchy.energy_by_store`).  The part at one level depends
on the pattern only as far as it says which tensors that level stores and where each is fetched from, so the
thousands of patterns of a deep machine have some hundreds of parts.  Each is least on a machine of its own:
all levels between two arrays are one, which spends for a tensor what the level does that it is fetched from
(``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from tilewright.formulation.expression import as_expr
from tilewright.formulation.mapping.compulsory import touched
from tilewright.formulation.mapping.constraints import Constraints
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.remainders import MergedCuts, counts_merged_cuts
from tilewright.formulation.mapping.space import build_space
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role

_ENERGY = parse_objective("energy")


@dataclass(frozen=True, slots=True)
class StoragePart:
    """What one part of the energy depends on.

    Parameters
    ----------
    level : index of the level whose stores are filled; ``None`` for what the PEs read
    sources : per tensor of the operator, the index of the level that it comes from; ``None`` where the level
        does not store it
    """

    level: int | None
    sources: tuple[int | None, ...]


def parts_of(stores: tuple[tuple[int, ...], ...]) -> list[StoragePart]:
    """The parts of a pattern's energy, what the PEs read first, then from the innermost level outwards.

    Parameters
    ----------
    stores : per tensor, the levels that store it, outermost first
    """
    levels = sorted({level for own in stores for level in own[1:]}, reverse=True)
    fills = [
        StoragePart(
            level, tuple(own[own.index(level) - 1] if level in own[1:] else None for own in stores)
        )
        for level in levels
    ]
    return [StoragePart(None, tuple(own[-1] for own in stores)), *fills]


def has_storage_parts(problem: LayerProblem) -> bool:
    """Whether the parts of all patterns are bounded by machines of their own."""
    operator, engine = problem.operator, problem.engine
    if not isinstance(problem.model, Hierarchy) or not counts_merged_cuts(operator):
        return False
    if any(level.sliding_window for level in engine.levels):
        return False
    if problem.space.nest.perfect:
        return True
    # One cut stands for several outside the first array; elsewhere it must be one, or leave no more pieces.
    arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
    inner = [b - a for a, b in zip(arrays, arrays[1:], strict=False)]
    strided = any(term.stride > 1 for tensor in operator.tensors for axis in tensor.axes for term in axis.terms)
    return all(size == 1 for size in inner) and not (
        strided and arrays and len(engine.levels) - 1 - arrays[-1] > 2
    )


def compulsory(problem: LayerProblem, part: StoragePart) -> float:
    """Energy that a part costs whatever the tiles are, pJ: every element once, or a full array."""
    operator, engine = problem.operator, problem.engine
    least = Fraction(0)
    for tensor, source in zip(operator.tensors, part.sources, strict=True):
        if source is None:
            continue
        outer = engine.levels[source]
        elements = touched(operator, tensor)
        if part.level is None:
            fans = [level.fanout.instances for level in engine.levels[source:] if level.fanout is not None]
            count = operator.iterations
            for instances in fans:
                count = -(-count // instances)
            elements = count
        role = tensor.role
        if tensor.is_output:
            least += elements * outer.write_energy_of(role)
            continue
        least += elements * outer.read_energy_of(role)
        if part.level is not None:
            least += elements * engine.levels[part.level].write_energy_of(role)
    return float(least)


def part_problem(problem: LayerProblem, part: StoragePart) -> LayerProblem:
    """A problem of energy that no mapping whose pattern has a part spends less than on that part."""
    operator, model = problem.operator, problem.model
    assert isinstance(model, Hierarchy)
    engine = _machine(problem, part)
    space = build_space(operator, engine, partial(model.orders, operator, engine), (), problem.space.tiles)
    # One block of loops stands for those of all levels outside the first array.
    nest: Nest = space.nest if space.nest.perfect else MergedCuts.of(space.nest, 0)
    boundary = len(nest.blocks) if part.level is None else nest.temporal[-1]
    energy = model.energy_by_store(nest).get(boundary, as_expr(0))
    limits = (*capacity_limits(nest), *array_limits(nest))
    scale = model.scale_of(engine)
    return replace(
        problem,
        engine=engine,
        objective=_ENERGY,
        constraints=Constraints(),
        space=replace(space, nest=nest),
        statement=Statement(energy, scale, nest.steps(), limits, {"part": energy}, scale),
        limits=limits,
    )


def _machine(problem: LayerProblem, part: StoragePart) -> Engine:
    """A level for all levels between two arrays, which holds whatever comes from one of them; then the store."""
    operator, engine = problem.operator, problem.engine
    end = len(engine.levels) if part.level is None else part.level
    arrays = [index for index in range(end) if engine.levels[index].fanout is not None]
    levels: list[MemoryLevel] = []
    for run in range(len(arrays) + 1):
        first = arrays[run - 1] + 1 if run else 0
        last = arrays[run] if run < len(arrays) else end - 1
        own = {
            tensor.role: engine.levels[source]
            for tensor, source in zip(operator.tensors, part.sources, strict=True)
            if source is not None and first <= source <= last
        }
        if run == len(arrays) and run and (first > last or (part.level is None and not own)):
            break  # no level, or nothing is stored there and nothing loops
        levels.append(
            MemoryLevel(
                f"run {run}",
                None,
                Fraction(0),
                Fraction(0),
                keeps=frozenset(own) if run else frozenset(Role),
                fanout=engine.levels[arrays[run]].fanout if run < len(arrays) else None,
                read_energies={role: level.read_energy_of(role) for role, level in own.items()},
                write_energies={role: level.write_energy_of(role) for role, level in own.items()},
            )
        )
    if part.level is not None:
        level = engine.levels[part.level]
        stored = {
            tensor.role
            for tensor, source in zip(operator.tensors, part.sources, strict=True)
            if source is not None
        }
        levels.append(
            replace(
                level,
                keeps=frozenset(stored),
                may_bypass=frozenset(),
                counted_bits=engine.capacity_element_bits(level),
                read_bandwidth=None,
                write_bandwidth=None,
                shared_bandwidth=None,
                fanout=None,
            )
        )
    return replace(engine, levels=tuple(levels))
