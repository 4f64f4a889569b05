"""What an iteration of a layer takes at least in turns of any size: optima of layers without turns.

Repeat the mapping of a turn along every dimension until the sizes of a larger layer are reached: this maps
that layer, with loops around that add nothing.  So where sizes of turns divide a layer's, each of its
iterations takes no more in its optimum than in any of the turns.  Sums that further turns add to are what a
loop over them outside the turn's mapping adds to.

A tensor that starts further out than the innermost level that all turns share and must store it takes at
least the way from there, once a turn, beside what its turns take when it starts in that level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product

from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.solvers.mapping.fused.floors.halos import Halos
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, residences, shared_levels
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnSolver
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

MOST_ITERATIONS = 15120
"""Of a dimension that sizes of turns divide; a number with many small divisors."""


class TurnFloors:
    """Floors of all turns of the layers of one group on one machine.

    Parameters
    ----------
    group, halos, trees : the layers, sizes of their turns along windows, and levels of homes
    solver : of turns
    """

    def __init__(self, group: FusedGroup, halos: Halos, trees: SkeletonSpace, solver: TurnSolver) -> None:
        self.group, self.halos, self.trees, self.solver = group, halos, trees, solver
        self.engine = solver.engine
        # Energies add up over repeated mappings; cycles of first fills and last drains need not.
        divides = trees.divides and solver.factors == "perfect"
        self.applies = group.has_windows and divides and not self.engine.leak
        self.begun = False
        self._each: dict[tuple[str, Homes], Fraction] = {}

    def begin(self) -> None:
        """Solve the layers, so that there are floors from then on."""
        if self.begun or not self.applies:
            return
        for layer, operator in self.group.layers:
            layers = list(self._layers(layer, operator))
            for homes in self._starts(layer, operator) if layers else ():
                costs = [
                    (self.solver.cost(own, homes, self.solver.engines.whole_rooms()), own) for own in layers
                ]
                each = [None if cost.bound is None else cost.bound / own.iterations for cost, own in costs]
                self._each[layer, homes] = min(
                    (floor for floor in each if floor is not None), default=Fraction(0)
                )
        self.begun = True

    def least(
        self, layer: str, turn: Operator, runs: int, homes: Mapping[Role, int], visits: Mapping[str, int]
    ) -> Fraction:
        """What all turns of a layer take at least; 0 where nothing is known.

        Parameters
        ----------
        layer, turn, runs : the layer, what the turns that add to the same sums compute, and how often
        homes : levels where its roles start that do not start in the outermost one
        visits : per operand, how often at least all of it is needed anew in a turn
        """
        starts = {
            tensor.role: self.inner_start(tensor.role, homes.get(tensor.role, 0)) for tensor in turn.tensors
        }
        each = self._each.get((layer, _homes(starts)))
        if each is None:
            return Fraction(0)
        ways = sum(
            (
                self.way(
                    turn, tensor, homes.get(tensor.role, 0), starts[tensor.role], visits.get(tensor.name, 1)
                )
                for tensor in turn.tensors
            ),
            Fraction(0),
        )
        return runs * (each * turn.turns * turn.iterations + ways)

    def inner_start(self, role: Role, level: int) -> int:
        """Where a role starts, or further inside the innermost level around all turns that must store it."""
        return max([level, *self._musts(role)])

    def way(self, turn: Operator, tensor: Tensor, outer: int, inner: int, visits: int) -> Fraction:
        """pJ at least of moving a tensor between two levels in turns that add to the same sums.

        Parameters
        ----------
        turn, tensor : what they compute
        outer, inner : the levels
        visits : how often all of an operand moves in a turn
        """
        if outer == inner:
            return Fraction(0)
        levels, role, number = self.engine.levels, tensor.role, touched(turn, tensor)
        if tensor.is_output:
            again = levels[outer].read_energy_of(role) + levels[inner].write_energy_of(role)
            return number * (turn.turns * levels[outer].write_energy_of(role) + (turn.turns - 1) * again)
        stored = sum(
            (levels[must].write_energy_of(role) for must in self._musts(role) if must > outer), Fraction(0)
        )
        return turn.turns * visits * number * (levels[outer].read_energy_of(role) + stored)

    def _musts(self, role: Role) -> list[int]:
        """Levels on the way to all turns that must store a role."""
        levels = self.engine.levels[: shared_levels(self.engine) + 1]
        return [
            index
            for index, level in enumerate(levels)
            if index and role in level.keeps and role not in level.may_bypass
        ]

    def _starts(self, layer: str, operator: Operator) -> Iterator[Homes]:
        """Where roles of a layer may start, not further out than they must be stored."""
        options: dict[Role, set[int]] = {}
        for tensor in operator.tensors:
            reading = self.group.reading(layer, tensor.name)
            if reading is not None:
                levels = self.trees.home_levels(reading.producer)
            elif tensor.is_output and self.group.read_by(layer):
                levels = self.trees.home_levels(layer)
            else:
                levels = [0, *residences(self.engine, tensor.role)]
            options.setdefault(tensor.role, set()).update(
                self.inner_start(tensor.role, level) for level in levels
            )
        for chosen in product(*(sorted(levels) for levels in options.values())):
            yield _homes(dict(zip(options, chosen, strict=True)))

    def _layers(self, layer: str, operator: Operator) -> Iterator[Operator]:
        """Layers of which the sizes of each turn divide one; nothing where sizes are not known."""
        bounds: list[list[int]] = []
        for dim, bound in operator.bounds.items():
            needed = len(self.halos.needs.elements[layer, dim])
            if self.halos.slides(layer, dim):
                sizes = self.halos.sizes(layer, dim)
                bounds.append([] if sizes is None else _multiples(sizes))
            else:
                bounds.append([bound] if needed == bound else [])
        for chosen in product(*bounds):
            yield sized(operator, dict(zip(operator.bounds, chosen, strict=True)))


def _homes(starts: Mapping[Role, int]) -> Homes:
    return tuple(sorted((role, level) for role, level in starts.items() if level))


def _multiples(sizes: frozenset[int]) -> list[int]:
    """Few numbers of which each size divides one."""
    numbers: list[int] = []
    for size in sorted(sizes):
        at = next(
            (at for at, number in enumerate(numbers) if math.lcm(number, size) <= MOST_ITERATIONS), None
        )
        if at is None:
            numbers.append(size)
        else:
            numbers[at] = math.lcm(numbers[at], size)
    return numbers
