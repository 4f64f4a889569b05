"""Bounds of trees that know the room of every level, before their turns are listed.

What a resident moves and holds follows from the loops around it: all of its tensor comes as often as loops
outside make others move, and the tile of the first turns takes room beside homes and other residents in the
same turns.  What is streamed takes none here, so the bound lies below every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.fused.shared_traffic import movement_energy
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.floors.first_bound import FirstBounds, LayerRuns, Step, paths
from tilewright.solvers.mapping.fused.floors.room_choice import Option, RoomChoice, RoomLayer, undominated
from tilewright.solvers.mapping.fused.floors.tree_floors import TreeFloors
from tilewright.solvers.mapping.fused.trees.skeletons import PlacedLoop
from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, Rooms, residences
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnCost, TurnSolver
from tilewright.workloads.mapping.operator import Role, Tensor

ALL = 99
"""More sequences within each other than any tree has: the loops of all are in order."""


@dataclass(frozen=True)
class RoomBound:
    """A bound, and what it rests on.

    Parameters
    ----------
    least : pJ
    layers : turns with homes and room of the residents that take so little
    """

    least: Fraction
    layers: tuple[tuple[LayerRuns, Homes, Rooms], ...]


@dataclass
class RoomBounds:
    """Bounds of the trees of one group on one machine.

    Parameters
    ----------
    group, engine : the layers and the machine
    first : bounds of the turns themselves
    solver : of turns that are alike; what it knows counts
    floors : of the layers of trees
    """

    group: FusedGroup
    engine: Engine
    first: FirstBounds
    solver: TurnSolver
    floors: TreeFloors
    _layers: dict[object, RoomLayer] = field(default_factory=dict)
    _options: dict[object, tuple[Option, ...]] = field(default_factory=dict)
    _inside: dict[object, int] = field(default_factory=dict)
    _bits: dict[object, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Energies as whole numbers: sums of them take most of the time.
        self.scale = math.lcm(*(energy.denominator for energy in _energies(self.engine)))

    def bound(self, tree: Branch, most: Fraction | None) -> RoomBound | None:
        """No candidate takes less; ``None`` where none that fits takes less than ``most``.

        Parameters
        ----------
        tree : with its loops in order and homes in place, without residents
        most : pJ; what takes as much is of no interest
        """
        rooms = self.first.homes.left(tree)
        if rooms is None:
            return None
        all_runs = self.first.runs(tree, ALL)
        left = [rooms[runs.layer] for runs in all_runs]
        floors = [math.floor(floor * self.scale) for floor in self.floors.known(tree, is_whole=True)]
        return self._least(all_runs, (left, floors), [loops for _, loops, _ in paths(tree)], most)

    def roomy(self, tree: Branch, most: Fraction | None) -> RoomBound | None:
        """The same in all orders of loops, as if homes and residents took no room."""
        all_runs = self.first.runs(tree)
        number = len(all_runs)
        rooms = [self.first.homes.whole] * number
        return self._least(all_runs, (rooms, [0] * number), [None] * number, most)

    def _least(
        self,
        all_runs: list[LayerRuns],
        turns: tuple[list[Rooms], list[int]],
        loops_of: Sequence[tuple[PlacedLoop, ...] | None],
        most: Fraction | None,
    ) -> RoomBound | None:
        """The least over residents.

        Parameters
        ----------
        all_runs, turns : what each layer's turns are, and their room and floor
        loops_of : loops around each layer; ``None`` for residents that take no room and come once
        most : pJ; what takes as much is of no interest
        """
        left, floors = turns
        layers: list[RoomLayer] = []
        for loops, runs in zip(loops_of, all_runs, strict=True):
            layers.append(self.layer(runs, loops))

        def known(at: int, homes: Homes) -> int | None:
            runs = all_runs[at]
            floor = self.floor(runs, homes)
            if not runs.exact:
                return floor
            cost = self.known(runs, homes, left[at])
            turn = self.first.operators(runs)[1]
            least = self.solver.least(turn, homes, left[at]) if cost is None else cost.bound
            return None if least is None else max(floor, math.floor(runs.runs * least * self.scale))

        choice = RoomChoice(layers, left, floors, known)
        chosen = choice.least(None if most is None else self.scaled(most))
        if chosen is None:
            return None
        least, homes = chosen
        return RoomBound(Fraction(least, self.scale), tuple(zip(all_runs, homes, left, strict=True)))

    def floor(self, runs: LayerRuns, homes: Homes) -> int:
        """Scaled pJ that a layer's turns take at least whose roles start in some levels."""
        return math.floor(self.first.floor(runs, homes) * self.scale)

    def scaled(self, energy: Fraction) -> int:
        """Of pJ, the whole number that costs are compared with; the next one up."""
        return math.ceil(energy * self.scale)

    def known(self, runs: LayerRuns, homes: Homes, rooms: Rooms) -> TurnCost | None:
        """What is known of a layer's turns that are all alike, with so much room."""
        return self.solver.known(self.first.operators(runs)[1], homes, rooms) if runs.exact else None

    def advance(self, bound: RoomBound) -> bool:
        """Solve turns of a layer that a bound rests on; whether there are any to be solved."""
        for runs, homes, rooms in bound.layers:
            if runs.exact and self.known(runs, homes, rooms) is None:
                self.solver.cost(self.first.operators(runs)[1], homes, rooms)
                return True
        return False

    def layer(self, runs: LayerRuns, loops: tuple[PlacedLoop, ...] | None) -> RoomLayer:
        """What a layer's turns take whatever is resident, and the ways of its tensors.

        Parameters
        ----------
        runs : of the layer
        loops : around it; ``None`` for residents that take no room and come once
        """
        layer = self._layers.get((runs, loops))
        if layer is None:
            layer = self._layers[runs, loops] = self._layer(runs, loops)
        return layer

    def _layer(self, runs: LayerRuns, loops: tuple[PlacedLoop, ...] | None) -> RoomLayer:
        turn = self.first.operators(runs)[1]
        passed = dict(runs.passed)
        fixed = self.first.operations(runs, turn)
        homes: dict[Role, int] = {}
        tensors: list[tuple[Role, tuple[Option, ...]]] = []
        for tensor in turn.tensors:
            if tensor.name not in passed:
                tensors.append((tensor.role, undominated(self._listed(runs, loops, tensor))))
                continue
            home = homes[tensor.role] = passed[tensor.name]
            fixed += self.first.inside(runs, turn, tensor, home)
            if tensor.is_output and home and runs.layer in self.group.leaving:
                each = self.engine.levels[0].write_energy_of(tensor.role)
                fixed += each * tensor.footprint(self.group.operator(runs.layer).bounds)
        return RoomLayer(math.floor(fixed * self.scale), homes, tuple(tensors))

    def _listed(
        self, runs: LayerRuns, loops: tuple[PlacedLoop, ...] | None, tensor: Tensor
    ) -> Iterator[Option]:
        """Ways of a tensor from outside: streamed, or resident in a level at some depth."""
        layer, names = runs.layer, self.group.names
        inside = {
            level: self.turns(runs, tensor, level) for level in (0, *residences(self.engine, tensor.role))
        }
        yield Option(0, inside.pop(0), 0, None, 0, ())
        if loops is None:
            for level, turns in inside.items():
                yield Option(self.traffic(runs, tensor, level, 1), turns, level, None, 0, ())
            return
        steps = self.first.steps(layer, loops)
        whole = not loops or self.first.gain_by_turn(runs, tensor)
        deepest = len(loops) if whole else len(loops) - 1
        tiles: dict[int, int] = {}
        for depth in range(deepest + 1):
            if depth:
                loop = loops[depth - 1][0]
                tiles = tiles | {self.group.ranks[loop.layer, loop.dim]: loop.tile}
            times = passes(tensor, steps, depth)
            # A store may stand at the beginning of the sequence that the next loop belongs to.
            below = loops[depth][1] if depth < len(loops) else frozenset({layer})
            around = tuple(index for index, name in enumerate(names) if name in below)
            for level, turns in inside.items():
                yield Option(
                    self.traffic(runs, tensor, level, times),
                    turns,
                    level,
                    self.place(tensor.role, level),
                    self.held(layer, tensor, level, tiles),
                    around,
                )

    def place(self, role: Role, level: int) -> int:
        """Where residents of a role take room in a level."""
        part = role if role in self.engine.levels[level].partitions else None
        return self.first.homes.places.index((level, part))

    def turns(self, runs: LayerRuns, tensor: Tensor, level: int) -> int:
        """Scaled pJ of a tensor in all turns, by the level where it starts."""
        key = runs, tensor.name, level
        if key not in self._inside:
            turn = self.first.operators(runs)[1]
            self._inside[key] = math.floor(self.first.inside(runs, turn, tensor, level) * self.scale)
        return self._inside[key]

    def traffic(self, runs: LayerRuns, tensor: Tensor, level: int, times: int) -> int:
        """Scaled pJ of moving all of a tensor so many times.

        Parameters
        ----------
        runs, tensor : of a layer
        level, times : from the outermost level, or to it, and how often
        """
        key = runs.layer, tensor.name, level, times, "moved"
        if key not in self._inside:
            whole = self.first.operators(runs)[0]
            moved = times * touched(whole, whole.tensor(tensor.name))
            own = self.group.operator(runs.layer)
            again = max(0, moved - tensor.footprint(own.bounds)) if tensor.is_output else 0
            energy = movement_energy(self.engine, tensor, (0, level), (moved, again))
            self._inside[key] = math.floor(energy * self.scale)
        return self._inside[key]

    def held(self, layer: str, tensor: Tensor, level: int, tiles: dict[int, int]) -> int:
        """Bits of the first tile of a resident inside some loops.

        Parameters
        ----------
        layer, tensor, level : what is resident where
        tiles : of the loops outside, by rank
        """
        key = layer, tensor.name, level, tuple(sorted(tiles.items()))
        if key not in self._bits:
            sizes = {dim: self.first.homes.first(layer, dim, tiles) for dim in tensor.dims}
            elements = tensor.footprint(sizes)
            self._bits[key] = bits_of_tile(self.engine, self.engine.levels[level], tensor.role, elements)
        return self._bits[key]


def _energies(engine: Engine) -> Iterator[Fraction]:
    """Everything that costs of a machine are sums of."""
    yield Fraction(engine.mac_energy)
    yield Fraction(engine.leak)
    for level in engine.levels:
        for role in Role:
            yield Fraction(level.read_energy_of(role))
            yield Fraction(level.write_energy_of(role))
        if level.fanout is not None:
            yield Fraction(level.fanout.energy)


def passes(tensor: Tensor, steps: tuple[Step, ...], depth: int) -> int:
    """How often at least all of a tensor comes to a store inside some loops.

    As often as loops that do not move it go on, if a loop inside them moves it: that one starts over then.
    Where loops slide windows over the same dimension, it is only of the outermost one's trips, and if no
    other loops cut it, that each makes something new whatever the others do.

    Parameters
    ----------
    tensor : of a layer
    steps : what the loops around the layer move of it, outermost first
    depth : how many of them stand outside the store
    """
    seen = {dim for step in steps if not step.slides for dim, _ in step.moves}
    number = waiting = 1
    for step in steps[:depth]:
        dims = {dim for dim, _ in step.moves}
        if step.slides:
            if dims & seen:
                continue
            seen |= dims
        trips = max((trips for _, trips in step.moves), default=1)
        if trips > 1 and dims & tensor.dims:
            number *= waiting
            waiting = 1
        else:
            waiting *= trips
    return number
