"""What a layer takes at least in any tree: an ordinary mapping of the whole layer that may begin early.

Put all loops around a layer's turns and those of one turn into one nest.  In it tensors that are passed on or
resident begin to live at points of their own, early, with nothing but shared loops outside; all others at one
point per level, as in a turn.  So the optimum of such mappings, in which what is passed on moves to its home
and from it for nothing, is no more than all turns of the layer take with its residents' traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, permutations

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.fused.occupancy import room_bits
from tilewright.formulation.mapping.nests.arrangements import EVEN, UNEVEN, Arrangement, Slot
from tilewright.formulation.mapping.problem import PERFECT, state_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.stopping import BoundReaches
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.trees.turn_engine import residences
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator

ENERGY = parse_objective("energy")
STEPS = 16
"""Parts of a level's room: what others take is rounded down to them, so that few floors are solved."""
LONGEST = 2.0
"""Seconds for a floor, after which its bound counts."""


@dataclass(frozen=True)
class Asked:
    """A layer as it stands in some trees.

    Parameters
    ----------
    operator : the layer
    passed : names of its tensors that are passed on
    shared : dimensions that shared loops may cut
    taken : steps of the home level's room that homes of other layers take
    """

    operator: Operator
    passed: tuple[str, ...]
    shared: frozenset[str]
    taken: int = 0


@dataclass(frozen=True)
class Floor:
    """What is known of a layer as it stands in some trees.

    Parameters
    ----------
    asked : the layer
    least : pJ; no mapping takes less
    most : pJ; what takes as much was of no interest
    """

    asked: Asked
    least: Fraction
    most: Fraction

    def speaks_of(self, asked: Asked) -> bool:
        """Whether it holds for the layer elsewhere: with no more loops around it and no more room."""
        return asked.shared <= self.asked.shared and self.asked.taken <= asked.taken

    def leaves_no_more(self, asked: Asked) -> bool:
        """Whether a floor of the layer elsewhere, with as many loops and as much room, is no higher."""
        is_all = self.least < self.most
        return is_all and self.asked.shared <= asked.shared and asked.taken <= self.asked.taken


@dataclass
class LayerFloors:
    """Floors of layers on one machine.

    Parameters
    ----------
    engine, model : the machine and its cost model
    factors, storage : the space of turns; there are floors for perfect factors and even storage alone, and
        where cycles have no price
    limits : of the whole search
    """

    engine: Engine
    model: CostModel
    factors: str | None
    storage: str | None
    limits: Limits = field(default_factory=Limits)
    _known: dict[tuple[Operator, tuple[str, ...]], list[Floor]] = field(default_factory=dict)
    _uneven: dict[tuple[Operator, int, int], tuple[Fraction, Fraction]] = field(default_factory=dict)
    _takes_long: bool = False

    def __post_init__(self) -> None:
        self.applies = not self.engine.leak and self.factors == PERFECT and self.storage in (None, EVEN)

    def may_know(self, operator: Operator) -> bool:
        """Whether a layer may have a floor: each of its tensors has one level in which it may be resident."""
        levels = [residences(self.engine, tensor.role) for tensor in operator.tensors]
        return self.applies and all(len(own) <= 1 for own in levels)

    def home_of(self, operator: Operator, homes: Sequence[tuple[str, int]]) -> int | None:
        """The level that is the home of all that a layer passes on, if floors know the layer.

        Parameters
        ----------
        operator : the layer
        homes : tensors that are passed on, and the levels of their homes
        """
        if not homes or not self.may_know(operator):
            return None
        passed = dict(homes)
        roles = {operator.tensor(name).role for name in passed}
        alone = all(t.name in passed or t.role not in roles for t in operator.tensors)
        [home, *others] = {*passed.values()}
        at_home = all(residences(self.engine, role) == [home] for role in roles)
        return home if alone and not others and at_home else None

    def steps(self, home: int, bits: int) -> int:
        """Whole steps of a level's room in so many bits."""
        room = room_bits(self.engine, self.engine.levels[home], None)
        return 0 if not room else min(STEPS - 1, bits * STEPS // room)

    def known(self, asked: Asked) -> Fraction:
        """No mapping takes less, in pJ, as far as is known without solving anything."""
        floors = self._known.get((asked.operator, asked.passed), ())
        return max((floor.least for floor in floors if floor.speaks_of(asked)), default=Fraction(0))

    def is_settled(self, asked: Asked, most: Fraction) -> bool:
        """Whether :meth:`floor` would tell no more: less room, or fewer loops, make no floor lower."""
        least = self.known(asked)
        floors = self._known.get((asked.operator, asked.passed), ())
        return least >= most or any(own.least <= least and own.leaves_no_more(asked) for own in floors)

    def floor(self, asked: Asked, home: int, most: Fraction) -> Fraction:
        """No mapping takes less, in pJ, or else than ``most``; raises where the whole search must end.

        Parameters
        ----------
        asked : the layer
        home : the level of its homes
        most : pJ; what takes as much is of no interest
        """
        if not self.is_settled(asked, most):
            self.limits.check()
            floors = self._known.setdefault((asked.operator, asked.passed), [])
            floors.append(Floor(asked, self._solved(asked, home, most), most))
        return self.known(asked)

    def _solved(self, asked: Asked, home: int, most: Fraction) -> Fraction:
        least = None if self._takes_long else self._arranged(asked, home, most)
        if least is None:
            # Points anywhere are bounded by parts of the machine, which takes less where arrays keep much.
            self._takes_long = True
            least = self._anywhere(asked, home, most)
        return max(Fraction(0), least)

    def _arranged(self, asked: Asked, home: int, most: Fraction) -> Fraction | None:
        """By sequences of early points; ``None`` where that takes too long."""
        engine = self._machine(asked, home, is_free=True)
        base = state_problem(asked.operator, engine, ENERGY, self.model, (), self.factors, EVEN)
        limits = replace(self.limits.share(1.0, LONGEST), gap=0.0)
        least = most
        for early in self._early(asked):
            part = base.arranged(_arrangement(asked, engine, early))
            result = solve(part, "branch", limits.stopping(BoundReaches(least)))
            if limits.expired:
                return None
            if result.bound is not None:
                least = min(least, result.bound)
        output = asked.operator.output
        if output.name in asked.passed and engine.levels[home].timing.drained:
            # Complete sums are read in their home once, on a way that they do not go.
            elements = output.footprint(asked.operator.bounds)
            least -= elements * engine.levels[home].read_energy_of(output.role)
        return least

    def _anywhere(self, asked: Asked, home: int, most: Fraction) -> Fraction:
        """By uneven storage, less what passing on saves: each element's way to its home, or from it, once."""
        operator, levels = asked.operator, self.engine.levels
        outermost, level = levels[0], levels[home]
        saved = Fraction(0)
        for name in asked.passed:
            tensor = operator.tensor(name)
            if tensor.is_output:
                each = outermost.write_energy_of(tensor.role)
                each += level.read_energy_of(tensor.role) if level.timing.drained else 0
            elif asked.shared <= tensor.dims:
                each = outermost.read_energy_of(tensor.role) + level.write_energy_of(tensor.role)
            else:
                return Fraction(0)  # it may be made again and again, which may cost less than its way
            saved += each * tensor.footprint(operator.bounds)
        if any(memory.timing.set_up for memory in levels):
            return Fraction(0)
        return min(most, self._least_uneven(asked, home, most + saved) - saved)

    def _least_uneven(self, asked: Asked, home: int, most: Fraction) -> Fraction:
        """What uneven storage takes at least, or else than ``most``, whatever is passed on."""
        key = asked.operator, home, asked.taken
        least, enough = self._uneven.get(key, (Fraction(0), Fraction(0)))
        if enough <= least < most:
            engine = self._machine(asked, home, is_free=False)
            problem = state_problem(asked.operator, engine, ENERGY, self.model, (), self.factors, UNEVEN)
            limits = replace(self.limits.share(1.0, LONGEST), gap=0.0)
            result = solve(problem, "branch", limits.stopping(BoundReaches(most)))
            least = max(least, result.bound or Fraction(0))
            self._uneven[key] = least, most
        return least

    def _early(self, asked: Asked) -> Iterator[tuple[tuple[str, int], ...]]:
        """Every sequence of the tensors that begin early, with their levels."""
        # The only level in which each may be resident, if there is one.
        levels = {t.name: residences(self.engine, t.role) for t in asked.operator.tensors}
        rest = [name for name, own in levels.items() if len(own) == 1 and name not in asked.passed]
        for number in range(len(rest) + 1):
            for more in combinations(rest, number):
                for names in permutations((*asked.passed, *more)):
                    yield tuple((name, levels[name][0]) for name in names)

    def _machine(self, asked: Asked, home: int, *, is_free: bool) -> Engine:
        """The machine with the room that is left; what is passed on may come and go for nothing."""
        engine = self.engine
        outermost, level = engine.levels[0], engine.levels[home]
        room = room_bits(engine, level, None)
        if room is not None and asked.taken:
            unit = engine.capacity_element_bits(level)
            left = room - asked.taken * room // STEPS
            level = replace(level, capacity=-(-left // unit), counted_bits=unit)
        if is_free:
            free = {asked.operator.tensor(name).role: Fraction(0) for name in asked.passed}
            outermost = replace(
                outermost,
                read_energies={**outermost.read_energies, **free},
                write_energies={**outermost.write_energies, **free},
            )
            free.pop(asked.operator.output.role, None)
            level = replace(level, write_energies={**level.write_energies, **free})
        levels = [outermost, *engine.levels[1:]]
        levels[home] = level
        return replace(engine, levels=tuple(levels))


def _arrangement(asked: Asked, engine: Engine, early: Sequence[tuple[str, int]]) -> Arrangement:
    """Points of storage: of what begins early, then of each level at once, as in one turn.

    Outside an early point stand shared loops alone; outside results that are passed on, none over sums.
    """
    operator = asked.operator
    every = frozenset(operator.bounds)
    points = [(0, _kept(operator, engine, 0)), *((level, (name,)) for name, level in early)]
    slots: list[Slot] = []
    for place, (level, names) in enumerate(points):
        dims = every
        if place < len(early):
            later = {name for name, _ in early[place:]}
            sums = operator.reduction_dims if later & {operator.output.name} & {*asked.passed} else ()
            dims = asked.shared - frozenset(sums)
        slots.append(Slot(level, names, dims, leads=True))
    for level in range(1, len(engine.levels)):
        late = tuple(name for name in _kept(operator, engine, level) if (name, level) not in early)
        if late:
            slots.append(Slot(level, late, every, leads=True))
    return tuple(slots)


def _kept(operator: Operator, engine: Engine, level: int) -> tuple[str, ...]:
    keeps = engine.levels[level].keeps
    return tuple(tensor.name for tensor in operator.tensors if tensor.role in keeps)
