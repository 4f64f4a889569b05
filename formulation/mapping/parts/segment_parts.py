"""Problems of parts of the machine, which bound a layer's problem over many arrangements of storage at once.

Energy is a sum over memory levels.  Call the levels between the outermost one and the first array *near*.
What they and all levels inside them spend, the near levels' fills left out, is least where the near levels
hold whole tensors: :func:`inside_part`.  What the outermost level spends, with those fills, depends on the
loops around the near stores alone: :func:`outside_part`.  Either has far fewer decisions than the whole, and
their least values together are a bound of it (``docs/uneven.md``).  Leakage belongs to cycles, of which each
part knows a bound; it counts in that part which knows more of them (:func:`leaks_outside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product as cartesian

from tilewright.formulation.expression import Expr, as_expr, choose, maximum, tighten, total
from tilewright.formulation.mapping.cost.base import Statement, Traffic, whole
from tilewright.formulation.mapping.nests.arrangement_rules import arrangement_limits, block_orders
from tilewright.formulation.mapping.nests.arrangements import (
    Arrangement,
    Reduction,
    Segment,
    even_arrangement,
    leading,
    of_segment,
    segments,
)
from tilewright.formulation.mapping.nests.remainders import MergedCuts, counts_merged_cuts
from tilewright.formulation.mapping.parts.compulsory import (
    least_compute,
    least_cycles,
    least_transfers,
    touched,
)
from tilewright.formulation.mapping.parts.entering import Entering, least_moved, moved_by
from tilewright.formulation.mapping.parts.near_storage import near_levels
from tilewright.formulation.mapping.parts.outer_levels import outside as outside_loops
from tilewright.formulation.mapping.parts.segment_cycles import (
    FILLS,
    PORT,
    busy_ports,
    first_fills,
    near_bits,
    on_port,
    served,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import MapSpace, build_space
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.hardware.mapping.engine import LEAKAGE, Engine
from tilewright.workloads.mapping.operator import Role

_ENERGY = parse_objective("energy")
INSIDE = "inside"
"""The component of a statement that has what near levels and those inside them spend."""
OWN = "own energy"
"""The detail of a statement that has what is spent in the part itself."""


def storages(problem: LayerProblem) -> Iterator[LayerProblem]:
    """The problem on every machine whose levels store what a mapping of the given one may store there.

    No mapping of those passes by a level that may keep its tensors; their spaces together are the problem's,
    where what may bypass a level is one tensor's role.
    """
    engine, roles = problem.engine, {tensor.role for tensor in problem.operator.tensors}
    loose = [
        (index, role)
        for index, level in enumerate(engine.levels)
        for role in sorted(level.may_bypass & level.keeps & roles)
    ]
    if not loose:
        yield problem
        return
    for taken in cartesian((True, False), repeat=len(loose)):
        out = {place for place, stays in zip(loose, taken, strict=True) if not stays}
        levels = tuple(
            replace(
                level,
                keeps=frozenset(role for role in level.keeps if (index, role) not in out),
                # Fixed here, because a level left out for a role must not change what its capacity counts in.
                counted_bits=engine.capacity_element_bits(level),
                may_bypass=frozenset(),
            )
            for index, level in enumerate(engine.levels)
        )
        yield replace(problem, engine=replace(engine, levels=levels))


def has_parts(problem: LayerProblem) -> bool:
    """Whether a problem's arrangements are bounded by its parts.

    The outermost level feeds near levels and no array, and there is an array further inside; tiles are not
    just any.
    """
    engine = problem.engine
    # The proofs of the parts are about settled arrangements and this model's counts.
    if problem.reduction is Reduction.NONE or problem.model.name != "hierarchy":
        return False
    if problem.reduction is Reduction.LOOPS and not counts_merged_cuts(problem.operator):
        return False
    if problem.constraints.rules and any(level.may_bypass for level in engine.levels):
        return False  # a demand may speak of what is stored where
    roles = [tensor.role for tensor in problem.operator.tensors]
    if any(roles.count(role) > 1 for level in engine.levels for role in level.may_bypass):
        return False  # one of two such tensors may be stored without the other, which no machine tells
    return len(segments(engine)) > 2 and engine.levels[0].fanout is None


def even_halves(problem: LayerProblem) -> tuple[Arrangement, Arrangement]:
    """The slots of even storage in the outermost level and the near ones, and further inside."""
    slots = even_arrangement(problem.operator, problem.engine)
    end = near_levels(problem.engine)[-1] + 1
    return slots[:end], slots[end:]


def least_outside(problem: LayerProblem) -> int:
    """Energy (scaled) that every mapping spends outside at least: all that is needed moves once.

    Nothing may bypass a level.
    """
    operator, engine, least = problem.operator, problem.engine, Fraction(0)
    if engine.starts:
        return 0
    if leaks_outside(problem):
        least += engine.leak * least_cycles(operator, engine)
    outermost, near = engine.levels[0], [engine.levels[index] for index in near_levels(engine)]
    for tensor in operator.tensors:
        stores = [level for level in near if tensor.role in level.keeps]
        if stores and tensor.is_output:
            least += touched(operator, tensor) * outermost.write_energy_of(tensor.role)
        elif stores:
            filled = sum(level.write_energy_of(tensor.role) for level in stores)
            least += touched(operator, tensor) * (outermost.read_energy_of(tensor.role) + filled)
    return int(least * problem.statement.energy_scale)


def charged(part: LayerProblem, objective: Objective, elsewhere: Expr | int) -> LayerProblem:
    """A part for an objective, with the least energy spent in the other one, in the problem's unit."""
    energy = total([part.statement.energy, elsewhere])
    details = {**part.statement.details, OWN: part.statement.energy}
    stated = replace(part.statement, energy=energy, components={INSIDE: energy}, details=details)
    return replace(part, statement=stated, objective=objective)


def inside_part(problem: LayerProblem, inner: Arrangement, entered: Sequence[Entering] = ()) -> LayerProblem:
    """A problem of energy that no mapping with given points inside the array spends less than inside.

    The outermost level is free, and the near levels hold whole tensors, so their points of storage are one,
    with all loops up to the array inside.  Where they store nothing, these loops stay in the outermost level,
    and the part has all of the energy.  Where near levels may be passed by, what they store is a choice of
    the part; its loops stand behind them whatever it is.

    Parameters
    ----------
    inner : slots inside the near levels
    entered : tensors that enter the array, of some of which a share counts outside
    """
    operator, parts = problem.operator, segments(problem.engine)
    near = parts[1]
    levels = list(problem.engine.levels)
    # Capacity goes, because a near level could not hold whole tensors.
    for index in near.levels:
        levels[index] = replace(levels[index], capacity=None, partitions={}, bank=None)
    for index in range(near.levels[-1]):  # they may fill no first tile of a near level: it is larger here
        levels[index] = replace(
            levels[index], read_bandwidth=None, write_bandwidth=None, shared_bandwidth=None
        )
    engine = replace(problem.engine, levels=tuple(levels))
    outermost = leading(operator, engine, parts[0], parts[0].items(operator, engine))
    middle = leading(operator, engine, near, near.items(operator, engine))
    if stores_near(problem):
        # Whole tensors near the array are the best that any points of storage there could do for the inside.
        head = _without_loops(outermost)
        part = _part(problem, engine, (*head, *middle, *inner), merged=len(head) + len(middle) - 1)
    else:
        part = _part(problem, engine, (*outermost, *_without_loops(middle), *inner))
    cycles = maximum([part.statement.cycles, least_cycles(operator, problem.engine), *served(part, problem)])
    shares = (-1 * own.energy(*counts, own.share) for own, counts in moved_by(part, entered).items())
    leaked = [] if leaks_outside(problem) else [_leakage(part, cycles)]
    inside = total([_energy(part, outside=False), *leaked, *shares])
    return replace(part, statement=replace(part.statement, energy=inside, cycles=cycles), objective=_ENERGY)


def _without_loops(slots: Arrangement) -> Arrangement:
    return tuple(replace(slot, dims=frozenset()) for slot in slots)


def stores_near(problem: LayerProblem) -> bool:
    """Whether near levels store anything; there is no outside part where they do not."""
    return bool(segments(problem.engine)[1].items(problem.operator, problem.engine))


def leaks_outside(problem: LayerProblem) -> bool:
    """Whether leakage counts outside: where the outermost level's ports take longer than computing, at least.

    Elsewhere, and where there is no outside part, it counts inside.
    """
    operator, engine = problem.operator, problem.engine
    return (
        bool(engine.leak)
        and stores_near(problem)
        and least_transfers(operator, engine) > least_compute(operator, engine)
    )


def near_arrangements(problem: LayerProblem) -> Iterator[Arrangement]:
    """The sequences in which points of storage may stand in the outermost level and the near ones."""
    operator, engine = problem.operator, problem.engine
    outermost, near = segments(engine)[:2]
    for first in of_segment(operator, engine, outermost, Reduction.FORMS):
        for second in of_segment(operator, engine, near, Reduction.FORMS):
            yield (*first, *second)


def inner_arrangements(
    problem: LayerProblem, check: Callable[[], None] = lambda: None
) -> Iterator[Arrangement]:
    """The sequences in which points of storage may stand further inside.

    Parameters
    ----------
    check : called between steps that may take long; what it raises goes through
    """
    operator, engine = problem.operator, problem.engine

    def inside(segment: Segment) -> Iterator[Arrangement]:
        for slots in of_segment(operator, engine, segment, Reduction.FORMS):
            check()
            yield slots

    for parts in cartesian(*map(inside, segments(engine)[2:])):
        yield tuple(slot for slots in parts for slot in slots)


def outside_part(
    problem: LayerProblem, near: Arrangement, busy: int = 0, entered: Sequence[Entering] = ()
) -> LayerProblem:
    """A problem of energy that no mapping with given points of near stores spends less than outside.

    Near levels store something (:func:`stores_near`): without stores there are no loops in them.

    All loops inside the last near store are one block; of the cycles only those inside, the outermost level's
    transfers, and the near levels' first fill and last drain count.

    Parameters
    ----------
    near : slots of the outermost level and of the near ones
    busy : cycles inside at least
    entered : tensors that enter the array: what is told of them, and of some a share that counts here
    """
    operator, engine = problem.operator, problem.engine
    end = near_levels(engine)[-1] + 1
    # The outside knows nothing of the array: one block stands for all loops inside the near levels.
    shell = replace(engine, levels=tuple(replace(level, fanout=None) for level in engine.levels[:end]))
    slots = (*near[:-1], replace(near[-1], dims=frozenset(operator.bounds)))
    part = _part(problem, shell, slots, also=[own.tensor.name for own in entered])
    stated, scale = part.statement, problem.statement.energy_scale
    nest = part.space.nest
    least = {own: least_moved(problem, nest, own) for own in entered}
    shares = (own.energy(*counts, own.share) for own, counts in least.items())
    fills = first_fills(nest, near_levels(engine))
    handed_out = on_port(problem, nest, entered)
    cycles = maximum([max(least_cycles(operator, engine), busy), *busy_ports(part, handed_out)]) + fills
    leaked = [_leakage(problem, cycles)] if leaks_outside(problem) else []
    energy = total([scale // stated.energy_scale * _energy(part, outside=True), *leaked, *shares])
    none = as_expr(0)
    traffic = tuple(
        Traffic(engine.levels[own.source].name, own.tensor.name, reads, none, updates, none)
        for own, (reads, updates) in least.items()
    )
    details = {FILLS: fills, PORT: near_bits(part)}
    statement = Statement(
        energy, scale, cycles, stated.limits, {INSIDE: energy}, scale, traffic, details=details
    )
    return replace(part, statement=statement, objective=_ENERGY)


def knowing(part: LayerProblem, inside: int, entered: Sequence[Entering] = ()) -> LayerProblem:
    """The problem of one arrangement, knowing what is spent inside at least.

    Parameters
    ----------
    inside : energy, without the share of passing tensors that counts outside
    entered : those tensors
    """
    stated, cycles = part.statement, part.statement.cycles
    outside, rest = [_energy(part, outside=True)], [_energy(part, outside=False)]
    (outside if leaks_outside(part) else rest).append(_leakage(part, stated.cycles))
    if entered:
        loops = outside_loops(part.space.nest, near_levels(part.engine)[-1])
        for own, (reads, updates) in moved_by(part, entered).items():
            fewest = least_moved(part, loops, own)
            known = tighten(reads, lower=fewest[0]), tighten(updates, lower=fewest[1])
            shared = own.energy(*known, own.share)
            outside.append(shared)
            rest += [-1 * own.energy(reads, updates), own.energy(*known), -1 * shared]
        handed_out = on_port(part, loops, entered)
        if handed_out and (busy := busy_ports(part, handed_out)):
            cycles = tighten(cycles, lower=maximum(busy) + first_fills(loops, near_levels(part.engine)))
    # Divided so that intervals of the inside are never below what was proven of it.
    parts = {part.engine.levels[0].name: total(outside), INSIDE: tighten(total(rest), lower=inside)}
    return replace(
        part, statement=replace(stated, energy=total(parts.values()), cycles=cycles, components=parts)
    )


def around(near: Arrangement) -> range:
    """The boundaries that tell the points of storage next to the outermost level."""
    return range(1, len(near))


def within(space: MapSpace) -> range:
    """The boundaries inside the last of the near loops."""
    nest = space.nest
    last = near_levels(nest.engine)[-1]
    first = 1 + max(index for index in nest.temporal if nest.blocks[index].level <= last)
    return range(first, len(nest.blocks))


def _part(
    problem: LayerProblem,
    engine: Engine,
    slots: Arrangement,
    merged: int | None = None,
    also: Sequence[str] = (),
) -> LayerProblem:
    """The problem over one arrangement on another engine, without a user's demands.

    Parameters
    ----------
    merged : the block whose cut stands for several, if any
    also : tensors that are counted, though none of these slots stores them inside its loops
    """
    operator = problem.operator
    orders = partial(block_orders, operator, engine, slots, problem.reduction, also=also)
    space = build_space(operator, engine, orders, (), problem.space.tiles, slots, alike=problem.alike)
    nest = space.nest
    if merged is not None:
        space = replace(space, nest=MergedCuts.of(nest, merged))
    statement = problem.model.statement(space.nest)
    if any(engine.levels[index].may_bypass for index in near_levels(engine)):
        # Loops that are merged into the last near level's may stand anywhere outside the array.
        near = near_levels(engine)
        levels = [
            replace(level, may_bypass=frozenset()) if index in near else level
            for index, level in enumerate(engine.levels)
        ]
        nest = nest.storing(replace(engine, levels=tuple(levels)), nest.residency)
    limits = (*statement.limits, *arrangement_limits(nest, slots, Reduction.FORMS))
    return replace(
        problem, engine=engine, space=space, statement=statement, limits=limits, even_space=problem.space
    )


def _energy(part: LayerProblem, outside: bool) -> Expr:
    """Energy of moving tensors of near levels between the outermost level and those, or all other energy.

    Leakage is in neither.
    """
    stated, near, roles = part.statement, near_levels(part.engine), _roles(part)
    levels = {level.name: index for index, level in enumerate(part.engine.levels)}
    energies = [] if outside else [*stated.components.items()]
    further = {name for name, _ in energies if levels.get(name, 1 + near[-1]) > near[-1]} - {LEAKAGE}
    terms = [own for name, own in energies if name in further]
    for traffic in stated.traffic:
        index = levels[traffic.level]
        level, residency = part.engine.levels[index], part.space.nest.residency[traffic.tensor]
        read, write = (
            whole(energy, stated.energy_scale)
            for energy in (
                level.read_energy_of(roles[traffic.tensor]),
                level.write_energy_of(roles[traffic.tensor]),
            )
        )
        if index == 0:
            accesses = total([read * traffic.reads, write * traffic.fills, write * traffic.updates])
            own = [any(store in near for store in stores) is outside for stores in residency.alternatives]
            terms.append(choose(residency.selector, [accesses if counts else 0 for counts in own]))
        elif index in near:
            inwards = [write * traffic.fills]
            terms += inwards if outside else [read * traffic.reads, write * traffic.updates]
    return total(terms)


def _leakage(problem: LayerProblem, cycles: Expr) -> Expr:
    """What leaks in some cycles, in the problem's unit."""
    return whole(problem.engine.leak, problem.statement.energy_scale) * cycles


def _roles(part: LayerProblem) -> dict[str, Role]:
    return {tensor.name: tensor.role for tensor in part.operator.tensors}
