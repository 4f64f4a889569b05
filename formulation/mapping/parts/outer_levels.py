"""A problem of the outermost levels of a machine, inside which everything counts what it must.

Where tensors pass different buffers, how often each is fetched from the outermost level depends on the tiles
of all of them together: what one buffer keeps in place, another one's loops move.  The levels up to the last
one that any tensor reaches first are a machine of their own.  What moves into their stores, and the first
fills and last drains of these, depend on the loops up to there alone, so mappings count the same on it;
whatever is further inside costs at least what :mod:`tilewright.formulation.mapping.parts.least_inside`
tells.  That holds for the tile of any level, so it bounds nodes of the whole, too (``docs/proofs.md``, outer
levels).
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.expression import Expr, maximum, tighten, total
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits, whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_and_last, port_time
from tilewright.formulation.mapping.demands.constraints import Constraints
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass
from tilewright.formulation.mapping.parts.compulsory import least_cycles
from tilewright.formulation.mapping.parts.least_inside import LeastInside
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import build_space


def first_levels(problem: LayerProblem) -> dict[str, int] | None:
    """Per tensor the outermost level that stores it besides the outermost of all.

    ``None`` where some tensor has several choices or no such level, and where mappings are counted otherwise
    than bounds of what is inside these levels assume.
    """
    operator, engine = problem.operator, problem.engine
    if type(problem.model) is not Hierarchy or problem.is_uneven or problem.even_space is not None:
        return None
    if engine.starts or operator.turns > 1 or operator.continued:
        return None
    firsts: dict[str, int] = {}
    for name, residency in problem.space.nest.residency.items():
        if len(residency.alternatives) > 1 or len(residency.alternatives[0]) < 2:
            return None
        firsts[name] = residency.alternatives[0][1]
    return firsts


def first_stores(problem: LayerProblem) -> dict[str, int] | None:
    """Per tensor the outermost level that stores it besides the outermost of all.

    ``None`` where there is no problem of outer levels: these are the same for all tensors, have nothing
    inside, or are not known.
    """
    firsts = first_levels(problem)
    if firsts is None:
        return None
    last = max(firsts.values())
    return firsts if min(firsts.values()) < last < len(problem.engine.levels) - 1 else None


def edges_of(problem: LayerProblem, firsts: dict[str, int]) -> list[int]:
    """The boundaries of first stores, outermost first."""
    residency = problem.space.nest.residency
    return sorted({residency[name].positions[level] for name, level in firsts.items()})


def outer_problem(problem: LayerProblem, last: int) -> LayerProblem:
    """A problem whose mappings have the objective keys of the whole's, or lower ones.

    Parameters
    ----------
    last : the level inside which all counts what it must
    """
    operator, engine, model = problem.operator, problem.engine, problem.model
    assert isinstance(model, Hierarchy)
    outer = (*engine.levels[:last], replace(engine.levels[last], fanout=None))
    machine = replace(engine, levels=outer)

    def orders(level: int) -> tuple[OrderClass, ...]:
        """Those of the whole: what tensors with stores further inside are fetched depends on them, too."""
        return model.orders(operator, engine, level) if level < last else ()

    space = build_space(operator, machine, orders, (), problem.space.tiles)
    nest, scale = space.nest, problem.statement.energy_scale
    cycles = _cycles(problem, nest)
    inside = LeastInside(problem, nest, scale)
    moved = total(part for place, part in model.energy_by_store(nest).items() if place < len(nest.blocks))
    energy = total(
        [
            scale // model.scale_of(machine) * moved,
            whole(engine.mac_energy, scale) * operator.iterations,
            *inside.energy.values(),
            whole(engine.leak, scale) * cycles,
        ]
    )
    limits = (*capacity_limits(nest), *array_limits(nest))
    return replace(
        problem,
        engine=machine,
        constraints=Constraints(),
        space=replace(space, selectors=(*space.selectors, *inside.selectors)),
        statement=Statement(energy, scale, cycles, limits, {"outer levels": energy}, scale),
        limits=limits,
    )


def _cycles(problem: LayerProblem, nest: Nest) -> Expr:
    """Cycles of the outermost level's ports, or of a full array, and those that nothing hides."""
    hidden, exposed = port_time(nest, 0, True), port_time(nest, 0, False)
    busy = maximum([least_cycles(problem.operator, problem.engine), *([] if hidden is None else [hidden])])
    ends = [
        time
        for index, level in enumerate(nest.engine.levels)
        if index and level.double_buffered
        for time in first_and_last(nest, index)
    ]
    return total([busy, *([] if exposed is None else [exposed]), *ends])


def outside(nest: Nest, last: int) -> Nest:
    """The loops of a nest outside the tile of a level, with all others in one block.

    Parameters
    ----------
    last : index of the level; of several points of storage in it the innermost one counts
    """
    place = max(index for index in nest.temporal if nest.blocks[index].level <= last)
    levels = (*nest.engine.levels[:last], replace(nest.engine.levels[last], fanout=None))
    residency = {
        name: replace(
            own,
            positions={level: edge for level, edge in own.positions.items() if level <= last},
            alternatives=tuple(
                tuple(level for level in stores if level <= last) for stores in own.alternatives
            ),
        )
        for name, own in nest.residency.items()
    }
    return replace(
        nest,
        engine=replace(nest.engine, levels=levels),
        boundaries=(*nest.boundaries[: place + 1], nest.boundaries[-1]),
        blocks=nest.blocks[: place + 1],
        residency=residency,
    )


def knowing_inside(problem: LayerProblem, last: int, behind: float = 0.0) -> LayerProblem:
    """The problem, whose intervals know what tiles of levels from one on cost at least further inside.

    Parameters
    ----------
    last : index of the outermost of these levels
    behind : what moves into stores and PEs behind the last array, computing and leakage cost at least, pJ
    """
    nest, scale = problem.space.nest, problem.statement.energy_scale
    array = nest.spatial[-1] if nest.spatial else 0
    moved = moved_knowing_inside(problem, last, scale)
    inside = total(
        [
            whole(problem.engine.mac_energy, scale) * problem.operator.iterations,
            *(own for (boundary, _), own in moved.items() if boundary > array),
            whole(problem.engine.leak, scale) * problem.statement.cycles,
        ]
    )
    outer = [own for (boundary, _), own in moved.items() if boundary <= array]
    energy = total([*outer, tighten(inside, lower=int(behind * scale)) if behind else inside])
    return replace(problem, statement=replace(problem.statement, energy=energy))


def moved_knowing_inside(problem: LayerProblem, last: int, scale: int) -> dict[tuple[int, str], Expr]:
    """The energy of what moves, by boundary and tensor, whose intervals know what tiles cost inside them.

    Parameters
    ----------
    last : index of the outermost level whose tiles tell
    scale : units of a pJ, those of the machine
    """
    nest, model = problem.space.nest, problem.model
    assert isinstance(model, Hierarchy)
    levels = [nest.blocks[index].level for index in nest.temporal]
    known = [
        LeastInside(problem, outside(nest, level), scale).energy
        for level in levels
        if last <= level < levels[-1]
    ]
    moved: dict[tuple[int, str], Expr] = {}
    for (boundary, name), own in model.energy_of_moving(nest).items():
        edges = nest.residency[name].positions.items()
        level = next((level for level, edge in edges if edge == boundary), None)
        lower = [least[level, name] for least in known if (level, name) in least]
        moved[boundary, name] = tighten(own, lower=maximum(lower)) if lower else own
    return moved
