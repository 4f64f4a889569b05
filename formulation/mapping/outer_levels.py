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

from tilewright.formulation.expression import Expr, as_expr, ceil_div, is_one, maximum, product, total, where
from tilewright.formulation.mapping.compulsory import (
    least_accesses,
    least_compute,
    may_spread,
    most_sharers,
    sharing_dims,
    touched,
)
from tilewright.formulation.mapping.constraints import Constraints
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits, whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.cost.hierarchy_counts import selected_counts
from tilewright.formulation.mapping.cost.hierarchy_cycles import first_and_last, port_time
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import build_space
from tilewright.formulation.mapping.storage_parts import StoragePart, compulsory, energy_of_moving, place_in
from tilewright.hardware.mapping.engine import MemoryLevel
from tilewright.workloads.mapping.operator import Tensor


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
            _accessed(problem, nest, scale),
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

    Parameters
    ----------
    nest : of the outer levels
    scale : units of a pJ
    """
    levels, last = problem.engine.levels, len(nest.engine.levels) - 1
    terms: list[Expr] = []
    for tensor in problem.operator.tensors:
        dims = [term.dim for axis in tensor.axes for term in axis.terms]
        (stores,) = problem.space.nest.residency[tensor.name].alternatives
        inside = next((store for store in stores if store > last), None)
        if inside is None or len({*dims}) < len(dims) or any(axis.is_compound for axis in tensor.axes):
            continue
        source, once = max(store for store in stores if store <= last), touched(problem.operator, tensor)
        unit = int(energy_of_moving(levels[source], levels[inside], tensor) * scale)
        options = [unit * (_served_anew(problem, nest, tensor, (source, inside)) - once)]
        is_plain = all(term.stride == 1 for axis in tensor.axes for term in axis.terms)
        # Instances that start sums at zero are the same where no array is between.
        fans = any(level.fanout is not None for level in levels[last:inside])
        if source < last and is_plain and not (fans and tensor.is_output):
            options.append(_as_if_stored(nest, tensor, (source, last), levels[inside], scale) - unit * once)
        terms.append(maximum([0, *options]))
    return total(terms)


def _served_anew(problem: LayerProblem, nest: Nest, tensor: Tensor, stores: tuple[int, int]) -> Expr:
    """Elements that a store inside the last level takes, if it cannot hold the last level's tile; else 0.

    Some loop within that tile fills it anew then: an element serves no more iterations at a time than there
    are, in the tiles that share it, of the loops that leave it in place.

    Parameters
    ----------
    stores : level that the tensor comes from, and the one inside
    """
    operator, engine, place = problem.operator, problem.engine, nest.temporal[-1]
    source, inside = stores
    bits = engine.usable_bits(engine.levels[inside])
    if bits is None:
        return as_expr(0)
    fans = [level.fanout for level in engine.levels[len(nest.engine.levels) - 1 : inside]]
    most = bits // engine.width(engine.levels[inside], tensor.role)
    most *= math.prod(fan.instances for fan in fans if fan is not None)
    tile = nest.boundaries[place]
    still = [dim for dim in operator.bounds if dim not in tensor.dims]
    between = nest.spatial_between(nest.residency[tensor.name].positions[source], place)
    served = product([*(tile[dim] for dim in still), *nest.trips(between, still)])
    fits = is_one(ceil_div(product(tile[dim] for dim in tensor.dims), most))
    return where(fits, 0, ceil_div(operator.iterations, served))


def _as_if_stored(nest: Nest, tensor: Tensor, place: tuple[int, int], store: MemoryLevel, scale: int) -> Expr:
    """Energy, scaled, of moving a tensor into the last level, if that were like a store inside it.

    A store inside is filled at least as often.

    Parameters
    ----------
    place : the level that the tensor comes from, and the last one
    store : the one inside
    """
    (source, last), residency = place, nest.residency[tensor.name]
    stores = (*(level for level in residency.alternatives[0] if level <= source), last)
    positions = {**residency.positions, last: nest.temporal[-1]}
    own = replace(residency, positions=positions, alternatives=(stores,))
    virtual = nest.storing(nest.engine, {**nest.residency, tensor.name: own})
    counts = selected_counts(virtual, tensor, source, whole_run=True)
    fills = selected_counts(virtual, tensor, last, whole_run=True).fills
    outside, role = nest.engine.levels[source], tensor.role
    read, write = (
        int(energy * scale) for energy in (outside.read_energy_of(role), outside.write_energy_of(role))
    )
    return total(
        [read * counts.reads, write * counts.updates, int(store.write_energy_of(role) * scale) * fills]
    )


def _accessed(problem: LayerProblem, nest: Nest, scale: int) -> Expr:
    """Energy, scaled, of accesses by PEs beyond those of a full array, and of reading sums again.

    PEs inside the last level share no more than its tile has of the loops that may be spread there and leave
    the tensor in place.  Sums are read again, but for the first of every element in every instance.

    Parameters
    ----------
    nest : of the outer levels
    scale : units of a pJ
    """
    operator, engine, last = problem.operator, problem.engine, len(nest.engine.levels) - 1
    place = nest.temporal[-1]
    terms: list[Expr] = []
    for tensor in operator.tensors:
        (stores,) = problem.space.nest.residency[tensor.name].alternatives
        level, inside = engine.levels[stores[-1]], engine.levels[max(stores[-1], last) :]
        full = max(least_accesses(operator, engine, tensor, stores[-1]), touched(operator, tensor))
        dims = sharing_dims(operator, tensor, engine.levels[stores[-1] :])
        outside = most_sharers(operator, tensor, engine.levels[stores[-1] : last], dims)
        own = [dim for dim in operator.bounds if dim in dims and may_spread(operator, dim, inside)]
        tile = [nest.boundaries[place][dim] for dim in own]
        count = maximum([full, ceil_div(operator.iterations, product([outside, *tile]))])
        unit = level.write_energy_of(tensor.role) if tensor.is_output else level.read_energy_of(tensor.role)
        terms.append(int(unit * scale) * (count - full))
        if tensor.is_output and not any(axis.is_compound for axis in tensor.axes):
            starts = tensor.footprint(operator.bounds) * math.prod(
                outer.fanout.instances for outer in engine.levels[: stores[-1]] if outer.fanout is not None
            )
            read = int(level.read_energy_of(tensor.role) * scale)
            terms.append(read * maximum([0, count - starts]))
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
    return least
