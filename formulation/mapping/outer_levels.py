"""A problem of the outermost levels of a machine, inside which everything counts what it must.

Where tensors pass different buffers, how often each is fetched from the outermost level depends on the tiles
of all of them together: what one buffer keeps in place, another one's loops move.  The levels up to the last
one that any tensor reaches first are a machine of their own.  What moves into their stores, and the first
fills and last drains of these, depend on the loops up to there alone, so mappings count the same on it;
whatever is further inside costs at least what is compulsory (``docs/proofs.md``, outer levels).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

from tilewright.formulation.expression import Expr, ceil_div, is_one, maximum, product, total, where
from tilewright.formulation.mapping.compulsory import least_accesses, least_compute, touched
from tilewright.formulation.mapping.constraints import Constraints
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits, whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_and_last, port_time
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import build_space
from tilewright.formulation.mapping.storage_parts import StoragePart, compulsory, energy_of_moving, place_in


def first_stores(problem: LayerProblem) -> dict[str, int] | None:
    """Per tensor the outermost level that stores it besides the outermost of all.

    ``None`` where there is no problem of outer levels: these are the same for all tensors, have nothing
    inside, or are not known.
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
    last = max(firsts.values())
    return firsts if min(firsts.values()) < last < len(engine.levels) - 1 else None


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
    space = build_space(operator, machine, partial(model.orders, operator, machine), (), problem.space.tiles)
    nest, scale = space.nest, problem.statement.energy_scale
    cycles = _cycles(problem, nest)
    moved = total(part for place, part in model.energy_by_store(nest).items() if place < len(nest.blocks))
    energy = total(
        [
            scale // model.scale_of(machine) * moved,
            int(_inside(problem, last) * scale),
            _handed_on(problem, nest, scale),
            whole(engine.leak, scale) * cycles,
        ]
    )
    limits = (*capacity_limits(nest), *array_limits(nest))
    return replace(
        problem,
        engine=machine,
        constraints=Constraints(),
        space=space,
        statement=Statement(energy, scale, cycles, limits, {"outer levels": energy}, scale),
        limits=limits,
    )


def _cycles(problem: LayerProblem, nest: Nest) -> Expr:
    """Cycles of the outermost level's ports, or of a full array, and those that nothing hides."""
    hidden, exposed = port_time(nest, 0, True), port_time(nest, 0, False)
    busy = maximum([least_compute(problem.operator, problem.engine), *([] if hidden is None else [hidden])])
    ends = [
        time
        for index, level in enumerate(nest.engine.levels)
        if index and level.double_buffered
        for time in first_and_last(nest, index)
    ]
    return total([busy, *([] if exposed is None else [exposed]), *ends])


def _handed_on(problem: LayerProblem, nest: Nest, scale: int) -> Expr:
    """Energy, scaled, of what stores hand to those inside the last level more often than once.

    A store inside that cannot hold a whole tile is filled anew by some loop around it within that tile.  So
    an element serves no more iterations at a time than the tile has of the loops that leave it in place.

    Parameters
    ----------
    nest : of the outer levels
    scale : units of a pJ
    """
    operator, engine, last = problem.operator, problem.engine, len(nest.engine.levels) - 1
    terms: list[Expr] = []
    for tensor in operator.tensors:
        dims = [term.dim for axis in tensor.axes for term in axis.terms]
        (stores,) = problem.space.nest.residency[tensor.name].alternatives
        inside = next((store for store in stores if store > last), None)
        if inside is None or len({*dims}) < len(dims) or any(axis.is_compound for axis in tensor.axes):
            continue
        source = max(store for store in stores if store <= last)
        level = engine.levels[inside]
        bits = engine.usable_bits(level)
        if bits is not None:
            instances = math.prod(
                outer.fanout.instances for outer in engine.levels[source:inside] if outer.fanout is not None
            )
            tile = nest.boundaries[nest.residency[tensor.name].positions[source]]
            held = ceil_div(
                product(tile[dim] for dim in dims), bits // engine.width(level, tensor.role) * instances
            )
            taken = ceil_div(
                operator.iterations, product(tile[dim] for dim in operator.bounds if dim not in dims)
            )
            again = where(is_one(held), 0, maximum([0, taken - touched(operator, tensor)]))
            unit = energy_of_moving(engine.levels[source], level, tensor)
            terms.append(int(unit * scale) * again)
    return total(terms)


def _inside(problem: LayerProblem, last: int) -> Fraction:
    """Energy at least, pJ, of computing, of accesses by PEs, and of what moves into stores inside a level."""
    operator, levels = problem.operator, problem.engine.levels
    innermost, least = len(levels) - 1, Fraction(0)
    alternatives = [problem.space.nest.residency[tensor.name].alternatives[0] for tensor in operator.tensors]
    for level in range(last + 1, len(levels)):
        places = [place_in(stores, level, level == innermost) for stores in alternatives]
        sources, stored = zip(*places, strict=True)
        least += Fraction(compulsory(problem, StoragePart(level, sources, stored)))
    for tensor, stores in zip(operator.tensors, alternatives, strict=True):
        if tensor.is_output and not any(axis.is_compound for axis in tensor.axes):
            # Sums are read again, but for the first of every element in every instance.
            starts = tensor.footprint(operator.bounds)
            for outside in levels[: stores[-1]]:
                starts *= 1 if outside.fanout is None else outside.fanout.instances
            again = least_accesses(operator, problem.engine, tensor, stores[-1]) - starts
            least += max(0, again) * levels[stores[-1]].read_energy_of(tensor.role)
    return least
