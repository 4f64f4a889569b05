"""Problems of single stores, which bound the energy of all storage patterns at once.

A *storage pattern* says which levels store each tensor.  Its energy is a sum over levels, what moves into
the stores there, and what the PEs read (:meth:`Hierarchy.energy_by_store`).  The part at one level depends
on the pattern only as far as it says which tensors that level stores and where each is fetched from, so the
thousands of patterns of a deep machine have some hundreds of parts.  Each is least on a machine of its own:
all levels between two arrays are one, which spends for a tensor what the level does that it is fetched from
(``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

from tilewright.formulation.expression import Expr, total
from tilewright.formulation.mapping.cost.base import Statement, array_limits, capacity_limits
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.demands.constraints import Constraints
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.remainders import MergedCuts, counts_merged_cuts
from tilewright.formulation.mapping.parts.compulsory import least_accesses, least_cycles, touched
from tilewright.formulation.mapping.parts.storage_cycles import Place, busy_cycles, own_cycles
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import Alike, MapSpace, build_space
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role, Tensor

_ENERGY = parse_objective("energy")
_FREE = Fraction(0)


@dataclass(frozen=True, slots=True)
class StoragePart:
    """What one part of the energy depends on.

    Parameters
    ----------
    level : index of the level whose stores are filled; of the innermost one, what the PEs read counts, too
    sources : per tensor of the operator, the index of the level outside that it comes from; ``None`` where
        it counts nothing
    stored : per tensor, whether the level stores it; what the innermost level does not store, the PEs read
        from its source
    """

    level: int
    sources: tuple[int | None, ...]
    stored: tuple[bool, ...]


def place_in(stores: Sequence[int], level: int, innermost: bool) -> tuple[int | None, bool]:
    """Source of a tensor at a level, and whether the level stores it, of a :class:`StoragePart`.

    Parameters
    ----------
    stores : levels that store the tensor, outermost first
    innermost : whether the level is the machine's innermost one
    """
    outside = max(store for store in stores if store < level)
    return (outside, level in stores) if innermost or level in stores else (None, False)


def has_storage_parts(problem: LayerProblem) -> bool:
    """Whether the parts of all patterns are bounded by machines of their own."""
    operator, engine = problem.operator, problem.engine
    if not isinstance(problem.model, Hierarchy) or not counts_merged_cuts(operator):
        return False
    overlaps = operator.output.overlaps
    if overlaps and problem.space.nest.perfect and not problem.is_uneven:
        return False  # what counts against reads depends on tiles of the source, which a part has not
    fans = [level.fanout for level in engine.levels if level.fanout is not None]
    if any(level.sliding_window for level in engine.levels) or any(fan.sharing for fan in fans):
        return False
    if problem.space.nest.perfect:
        return True
    # One cut stands for several outside the first array; elsewhere it must be one, or leave no more pieces.
    arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
    inner = [b - a for a, b in pairwise(arrays)]
    # Single iterations have no gaps, so what PEs read counts alike whatever the cuts.
    deepest = max(
        (
            index
            for tensor in operator.tensors
            for index, level in enumerate(engine.levels)
            if tensor.role in level.keeps
            and any(term.stride > 1 for axis in tensor.axes for term in axis.terms)
        ),
        default=0,
    )
    return all(size == 1 for size in inner) and not (arrays and deepest - arrays[-1] > 2)


def compulsory(
    problem: LayerProblem,
    part: StoragePart,
    weight: Fraction = _FREE,
    known: MutableMapping[tuple[int, int, int, bool], float] | None = None,
) -> float:
    """What a part costs whatever the tiles are, pJ.

    Every element is moved once, and read once by PEs, or as often as a full array needs operands.

    Parameters
    ----------
    weight : what a cycle costs with the reads of PEs, pJ
    known : what tensors of the problem cost in parts, which many of them share; added to
    """
    operator, engine = problem.operator, problem.engine
    known = {} if known is None else known
    least = 0.0
    if part.level == len(engine.levels) - 1:
        least += float(engine.mac_energy * operator.iterations + weight * least_cycles(operator, engine))
    for place, (source, stored) in enumerate(zip(part.sources, part.stored, strict=True)):
        if source is not None:
            own = part.level, place, source, stored
            if own not in known:
                known[own] = _compulsory(problem, *own)
            least += known[own]
    return least


def _compulsory(problem: LayerProblem, level: int, place: int, source: int, stored: bool) -> float:
    """What one tensor costs in a part whatever the tiles are, pJ.

    Parameters
    ----------
    level : whose stores are filled
    place : of the tensor
    source : level that it comes from
    stored : whether it is stored
    """
    operator, engine = problem.operator, problem.engine
    tensor, least = operator.tensors[place], Fraction(0)
    if stored:
        least += energy_of_moving(engine.levels[source], engine.levels[level], tensor) * touched(
            operator, tensor
        )
    if level == len(engine.levels) - 1:
        innermost = level if stored else source
        count = max(least_accesses(operator, engine, tensor, innermost), touched(operator, tensor))
        least += _spent(engine.levels[innermost], tensor) * count
    return float(least)


def energy_of_moving(source: MemoryLevel, store: MemoryLevel, tensor: Tensor) -> Fraction:
    """Energy of an element that is moved into a store, or of an output that leaves it, pJ."""
    return _spent(source, tensor) + (0 if tensor.is_output else store.write_energy_of(tensor.role))


def _spent(level: MemoryLevel, tensor: Tensor) -> Fraction:
    """Energy of an element that leaves a level inwards, or comes back as an output, pJ."""
    return level.write_energy_of(tensor.role) if tensor.is_output else level.read_energy_of(tensor.role)


def part_problem(
    problem: LayerProblem, part: StoragePart, weight: Fraction = _FREE, alike: Alike | None = None
) -> LayerProblem:
    """A problem of energy that no mapping whose pattern has a part spends less than on that part.

    Parameters
    ----------
    problem : over even storage
    weight : what each of the part's own cycles costs besides, pJ
    alike : spaces of other parts of the same operator, which share decisions with this one
    """
    operator, model, tiles = problem.operator, problem.model, problem.space.tiles
    engine = machine_of_part(problem, part)
    space = build_space(operator, engine, partial(model.orders, operator, engine), (), tiles, alike=alike)
    # One block of loops stands for those of all levels outside the first array.
    nest: Nest = space.nest if space.nest.perfect else MergedCuts.of(space.nest, 0)
    return stated_part(problem, part, weight, replace(space, nest=nest), alike)


def stated_part(
    problem: LayerProblem, part: StoragePart, weight: Fraction, space: MapSpace, alike: Alike | None
) -> LayerProblem:
    """The problem of a part over some mappings of its machine.

    Parameters
    ----------
    weight : what each of the part's own cycles costs besides, pJ
    space : of :func:`machine_of_part`, with counts that are never too large
    alike : spaces among which this one is
    """
    model, nest = problem.model, space.nest
    assert isinstance(model, Hierarchy)
    by_store, level = model.energy_by_store(nest), len(nest.engine.levels) - 1
    stored = (own.positions[level] for own in nest.residency.values() if level in own.positions)
    places = {*stored} if any(part.stored) else set[int]()
    if part.level == len(problem.engine.levels) - 1:
        places.add(len(nest.blocks))
    scale = model.scale_of(nest.engine) * weight.denominator
    energy = weight.denominator * total(by_store.get(place, 0) for place in sorted(places))
    if weight:
        energy = energy + int(weight * scale) * _cycles(problem, part, nest)
    return energy_problem(problem, nest.engine, space, energy, scale, alike)


def energy_problem(
    problem: LayerProblem,
    engine: Engine,
    space: MapSpace,
    energy: Expr,
    scale: int,
    alike: Alike | None = None,
) -> LayerProblem:
    """The problem of some part of the energy, on a machine that stands for levels of another one.

    Parameters
    ----------
    problem : of the whole energy, on the whole machine
    engine, space : the machine of the part, and its mappings
    energy, scale : the part in pJ times the scale
    alike : spaces among which this one is
    """
    nest = space.nest
    limits = (*capacity_limits(nest), *array_limits(nest))
    return replace(
        problem,
        engine=engine,
        objective=_ENERGY,
        constraints=Constraints(),
        space=space,
        statement=Statement(energy, scale, nest.steps(), limits, {"part": energy}, scale),
        limits=limits,
        alike=alike,
    )


def _cycles(problem: LayerProblem, part: StoragePart, nest: Nest) -> Expr:
    engine = problem.engine
    arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
    places = zip(problem.operator.tensors, part.sources, part.stored, strict=True)
    sources = {
        tensor.name: Place(source, bisect_left(arrays, source))
        for tensor, source, is_stored in places
        if is_stored and source is not None
    }
    place = Place(part.level, len(nest.engine.levels) - 1)
    busy = busy_cycles(engine, nest) if part.level == len(engine.levels) - 1 else None
    return own_cycles(engine, nest, place, sources, busy)


def machine_of_part(problem: LayerProblem, part: StoragePart) -> Engine:
    """A level for all those between two arrays, which has what comes from one of them; then the store."""
    operator, engine = problem.operator, problem.engine
    end = part.level
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
        if run == len(arrays) and run and (first > last or not (own or any(part.stored))):
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
    level = engine.levels[part.level]
    if any(part.stored):
        stored = zip(operator.tensors, part.stored, strict=True)
        levels.append(
            replace(
                level,
                keeps=frozenset(tensor.role for tensor, is_stored in stored if is_stored),
                may_bypass=frozenset(),
                counted_bits=engine.capacity_element_bits(level),
                read_bandwidth=None,
                write_bandwidth=None,
                shared_bandwidth=None,
            )
        )
    elif level.fanout is not None:
        levels[-1] = replace(levels[-1], fanout=level.fanout)
    return replace(engine, levels=tuple(levels))
