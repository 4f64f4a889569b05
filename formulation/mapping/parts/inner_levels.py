"""Problems of the innermost levels of a machine, for which all levels outside them are one.

A part of a storage pattern is what one level costs
(:mod:`tilewright.formulation.mapping.parts.storage_parts`). What several levels cost together is more than
the sum of their least: a tile that one of them reuses well is moved often by another one.  As in a part, one
block of loops stands for those of all levels outside (``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from tilewright.formulation.expression import Expr, Variable, as_expr, choose, maximum, total
from tilewright.formulation.mapping.cost.base import whole
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.remainders import MergedCuts
from tilewright.formulation.mapping.parts.outer_levels import first_levels, moved_knowing_inside
from tilewright.formulation.mapping.parts.storage_cycles import Place, busy_cycles, own_cycles
from tilewright.formulation.mapping.parts.storage_parts import StoragePart, energy_problem, place_in
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.space import Alike, MapSpace, build_space
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class InnerStores:
    """What some levels of a machine store, and where it comes from; inside them nothing is stored.

    Parameters
    ----------
    levels : their indices, outermost first; each stores something
    sources : per tensor of the operator, the index of the level outside all of them that it comes from
    stored : per tensor, those of the levels that store it, outermost first
    """

    levels: tuple[int, ...]
    sources: tuple[int, ...]
    stored: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, stores: Sequence[Sequence[int]], levels: Sequence[int]) -> InnerStores:
        """The innermost levels of those in which tensors are stored.

        Parameters
        ----------
        stores : per tensor, the levels that store it, outermost first
        levels : the innermost ones that store anything, outermost first; the outermost level is none of them
        """
        return cls(
            tuple(levels),
            tuple(max(level for level in own if level < levels[0]) for own in stores),
            tuple(tuple(level for level in own if level >= levels[0]) for own in stores),
        )

    def part(self, level: int, innermost: bool) -> StoragePart:
        """The part at one of the levels, or at another one inside them, where nothing is stored.

        Parameters
        ----------
        innermost : whether the level is the machine's innermost one
        """
        places = [
            place_in((source, *own), level, innermost)
            for source, own in zip(self.sources, self.stored, strict=True)
        ]
        sources, stored = zip(*places, strict=True)
        return StoragePart(level, sources, stored)

    def stand_alone_on(self, engine: Engine, outside: int) -> bool:
        """Whether no array is further outside than next to these levels.

        Parameters
        ----------
        outside : the next level outside that stores anything
        """
        arrays = [index for index in range(self.levels[0]) if engine.levels[index].fanout is not None]
        return not arrays or (len(arrays) == 1 and arrays[0] >= outside)


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
    model, stores = problem.model, _settled(problem, first)
    assert isinstance(model, Hierarchy)
    engine = _machine(problem, stores)
    space = _space(problem, engine, alike)
    nest, scale = space.nest, model.scale_of(engine) * weight.denominator
    outer, *inner = [
        maximum([weight.denominator * spent + int(weight * scale) * own, int(known[level] * scale)])
        for level, spent, own in _levels(problem, stores, nest)
    ]
    energy = total([outer, maximum([total(inner), int(inside * scale)])])
    return energy_problem(problem, engine, space, energy, scale, alike)


def inner_key_problem(
    problem: LayerProblem, first: int, known: MappingABC[int, float], outside: Sequence[tuple[float, int]]
) -> tuple[LayerProblem, tuple[Variable, ...]]:
    """As :func:`stores_problem`, of some level and all inside it, and the choice of what is outside, if any.

    Parameters
    ----------
    first : the level, of :func:`firsts`
    known : what each level costs at least, pJ
    outside : energies, pJ, and cycles of which levels outside have some one at least
    """
    part = stores_problem(problem, _settled(problem, first), known, 0.0)
    statement, scale = part.statement, part.statement.energy_scale
    energies, cycles = ([int(energy * scale) for energy, _ in outside], [own for _, own in outside])
    selectors: tuple[Variable, ...] = ()
    own_energy, waiting = as_expr(energies[0]), as_expr(cycles[0])
    if len(outside) > 1:
        selectors = (Variable("levels outside", tuple(range(len(outside)))),)
        own_energy, waiting = choose(selectors[0], energies), choose(selectors[0], cycles)
    energy = total([statement.energy, own_energy, whole(problem.engine.leak, scale) * waiting])
    statement = replace(statement, energy=energy, cycles=total([statement.cycles, waiting]))
    space = replace(part.space, selectors=(*selectors, *part.space.selectors))
    return replace(part, space=space, statement=statement), selectors


def stores_problem(
    problem: LayerProblem,
    stores: InnerStores,
    known: MappingABC[int, float],
    outside: float,
    alike: Alike | None = None,
    fills: bool = True,
    knows_inside: bool = False,
) -> LayerProblem:
    """A problem whose mappings have the objective keys of the whole's with their tiles, or lower ones.

    Energy is that of some levels' stores, and what levels outside cost at least; cycles are those of the same
    levels.

    Parameters
    ----------
    problem : the whole
    stores : of the levels
    known : what each of them costs at least, pJ
    outside : what levels outside cost at least, pJ
    alike : spaces of other levels or stores of the same operator
    fills : whether first fills from levels outside, and last drains to them, count
    knows_inside : whether intervals know what tiles cost at least further inside, where that can be told
    """
    model, scale = problem.model, problem.statement.energy_scale
    assert isinstance(model, Hierarchy)
    engine = _machine(problem, stores)
    space = _space(problem, engine, alike)
    nest, unit = space.nest, scale // model.scale_of(engine)
    part = replace(problem, engine=engine, space=space)
    knows_inside = knows_inside and first_levels(part) is not None
    moved = moved_knowing_inside(part, 1, model.scale_of(engine)) if knows_inside else None
    levels = _levels(problem, stores, nest, fills, moved)
    cycles = total(own for _, _, own in levels)
    costs = [maximum([unit * spent, int(known[level] * scale)]) for level, spent, _ in levels]
    energy = total([*costs, int(outside * scale), whole(problem.engine.leak, scale) * cycles])
    part = energy_problem(problem, engine, space, energy, scale, alike)
    statement = replace(part.statement, cycles=cycles)
    return replace(part, objective=problem.objective, statement=statement)


def _settled(problem: LayerProblem, first: int) -> InnerStores:
    """Of some level and all inside it, where every tensor is always stored in the same levels."""
    alternatives = (
        problem.space.nest.residency[tensor.name].alternatives for tensor in problem.operator.tensors
    )
    return InnerStores.of([own for (own,) in alternatives], range(first, len(problem.engine.levels)))


def _space(problem: LayerProblem, engine: Engine, alike: Alike | None = None) -> MapSpace:
    """The tiles of a machine of inner levels, in which one cut stands for all outside."""
    operator = problem.operator
    orders = partial(problem.model.orders, operator, engine)
    space = build_space(operator, engine, orders, (), problem.space.tiles, alike=alike)
    return space if space.nest.perfect else replace(space, nest=MergedCuts.of(space.nest, 0))


def _levels(
    problem: LayerProblem,
    stores: InnerStores,
    nest: Nest,
    fills: bool = True,
    moved: MappingABC[tuple[int, str], Expr] | None = None,
) -> list[tuple[int, Expr, Expr]]:
    """The levels, each with the energy of its stores, in units of the nest's machine, and its own cycles.

    Parameters
    ----------
    fills : whether first fills from levels outside, and last drains to them, count
    moved : energy of what moves, by boundary and tensor, where more is known than the nest tells
    """
    model, engine = problem.model, problem.engine
    assert isinstance(model, Hierarchy)
    by_store, last = model.energy_by_store(nest, moved), nest.temporal[-1]
    levels: list[tuple[int, Expr, Expr]] = []
    for number, (level, place) in enumerate(zip(stores.levels, nest.temporal[1:], strict=True), start=1):
        spent = total(part for at, part in by_store.items() if min(at, last) == place)
        sources: dict[str, Place] = {}
        for tensor, outside, own in zip(problem.operator.tensors, stores.sources, stores.stored, strict=True):
            if level in own:
                source = max([outside, *(other for other in own if other < level)])
                merged = 1 + stores.levels.index(source) if source in stores.levels else 0
                if merged or fills:
                    sources[tensor.name] = Place(source, merged)
        busy = busy_cycles(engine, nest) if level == stores.levels[-1] else None
        levels.append((level, spent, own_cycles(engine, nest, Place(level, number), sources, busy)))
    return levels


def _machine(problem: LayerProblem, stores: InnerStores) -> Engine:
    """One level for all outside, with the energies of what tensors come from, and the levels.

    Arrays of levels that are left out are those of the next level outside.
    """
    engine, tensors = problem.engine, problem.operator.tensors
    sources = {
        tensor.role: engine.levels[source] for tensor, source in zip(tensors, stores.sources, strict=True)
    }
    outermost = MemoryLevel(
        "all outside",
        None,
        Fraction(0),
        Fraction(0),
        keeps=frozenset(Role),
        read_energies={role: level.read_energy_of(role) for role, level in sources.items()},
        write_energies={role: level.write_energy_of(role) for role, level in sources.items()},
    )
    levels = [outermost]
    for index, level in enumerate(engine.levels):
        if index in stores.levels:
            levels.append(level)
            if level.may_bypass:
                kept = {
                    tensor.role for tensor, own in zip(tensors, stores.stored, strict=True) if index in own
                }
                room = engine.capacity_element_bits(level)
                keeps = frozenset(kept)
                levels[-1] = replace(level, keeps=keeps, may_bypass=frozenset(), counted_bits=room)
        elif level.fanout is not None:
            levels[-1] = replace(levels[-1], fanout=level.fanout)
    return replace(engine, levels=tuple(levels))
