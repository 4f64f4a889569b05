"""A bound on all candidates of a skeleton from trip counts alone, before its turns are listed.

Where intermediates are read element by element, all turns of a layer have one size.  Where a loop slides a
window over what a layer makes, its turns together make at least what is needed, and what does not depend on
the window is read anew in every turn in which something new is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.running_rows import Scaling, rows_moved, sums_scaled
from tilewright.formulation.mapping.fused.shared_traffic import movement_energy
from tilewright.formulation.mapping.fused.softmax import WORDS, across
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.solvers.mapping.fused.floors.halos import Halos
from tilewright.solvers.mapping.fused.floors.home_room import HomeRooms
from tilewright.solvers.mapping.fused.floors.needs import Needs
from tilewright.solvers.mapping.fused.floors.remade import made_in, times_made
from tilewright.solvers.mapping.fused.floors.turn_floors import TurnFloors
from tilewright.solvers.mapping.fused.trees.skeletons import PlacedLoop
from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Operator, Role, Tensor


@dataclass(frozen=True)
class Step:
    """What a loop around a layer moves.

    Parameters
    ----------
    moves : dimensions of the layer, and in how many of the loop's trips there is something new
    slides : whether through windows of the layer's readers
    """

    moves: tuple[tuple[str, int], ...]
    slides: bool


@dataclass(frozen=True)
class LayerRuns:
    """What the turns of one layer in a skeleton are at least.

    Parameters
    ----------
    layer : the layer
    needed : iterations per dimension that all turns together make
    sizes : iterations per dimension of the turns that add to the same sums, in one turn; where windows slide
        all that turns make, halos included
    sums : turns that add to the same sums
    runs : how often there are such turns
    passed : tensors that are passed on, and the levels of their homes
    slides : dimensions over which a window slides, and in how many turns
    exact : whether the turns are these and no others
    loose : dimensions of which turns may have other sizes
    """

    layer: str
    needed: tuple[int, ...]
    sizes: tuple[int, ...]
    sums: int
    runs: int
    passed: tuple[tuple[str, int], ...]
    slides: tuple[tuple[str, int], ...]
    exact: bool
    loose: frozenset[str]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.layer, self.sizes, self.sums, self.runs, self.passed, self.slides))


class FirstBounds:
    """Bounds of skeletons of one group on one machine."""

    def __init__(self, group: FusedGroup, engines: TurnEngines) -> None:
        self.group, self.engines = group, engines
        self.engine = engine = engines.engine
        self.needs = Needs(group)
        self.homes = HomeRooms(group, engines, self.needs)
        self.halos = Halos(group, self.needs)
        self.floors: TurnFloors | None = None
        self._is_plain = not (group.online or group.has_windows)
        self._levels = [level.name for level in engine.levels]
        self._by_path: dict[object, LayerRuns] = {}
        self._steps: dict[object, tuple[Step, ...]] = {}
        self._known: dict[LayerRuns, Fraction] = {}
        self._raised: dict[LayerRuns, Fraction] = {}
        self._floors: dict[tuple[LayerRuns, Homes], Fraction] = {}
        self._operators: dict[LayerRuns, tuple[Operator, Operator]] = {}
        self._new: dict[tuple[str, str, int, int, int], int] = {}

    def fits(self, tree: Branch) -> bool:
        """Whether homes may have room for what they hold at once."""
        return self.homes.left(tree) is not None

    def bound(self, tree: Branch) -> Fraction:
        """No candidate of the skeleton takes less energy, in pJ."""
        return sum((self.least(runs) for runs in self.runs(tree)), Fraction(0))

    def runs(self, tree: Branch, in_order: int = 0) -> list[LayerRuns]:
        """What the turns of every layer are at least.

        Parameters
        ----------
        tree : with its homes
        in_order : as of :meth:`Halos.made`
        """
        layers: list[LayerRuns] = []
        all_made = self.halos.made(tree, in_order)
        for leaf, loops, stores in paths(tree):
            homes = {store.layer: self._levels.index(store.level) for store in stores}
            inside = made_in(self.group, tree, leaf.layer) if self._is_plain else frozenset[str]()
            made = all_made.get(leaf.layer, {})
            key = leaf.layer, loops, tuple(homes.items()), inside, tuple(made.items())
            runs = self._by_path.get(key)
            if runs is None:
                runs = self._layer(leaf.layer, loops, homes, made)
                if inside:
                    times = times_made(self.group, leaf.layer, inside, loops)
                    runs = replace(runs, runs=runs.runs * times) if times > 1 else runs
                self._by_path[key] = runs
            layers.append(runs)
        return layers

    def least(self, runs: LayerRuns) -> Fraction:
        """What a layer's turns take at least; residents are read from outside once in all runs."""
        if runs not in self._known:
            self._known[runs] = self._counted(runs)
        if self.floors is None or not self.floors.begun:
            return self._known[runs]
        if runs not in self._raised:
            self._raised[runs] = max(self._known[runs], self._floor_of(runs))
        return self._raised[runs]

    def _counted(self, runs: LayerRuns) -> Fraction:
        """The same by trip counts alone."""
        _, turn = self.operators(runs)
        return self.operations(runs, turn) + sum(
            min(self.inside(runs, turn, tensor, level) + moved for _, level, moved in ways)
            for tensor, ways in zip(turn.tensors, self._ways(runs), strict=True)
        )

    def _ways(self, runs: LayerRuns) -> list[list[tuple[Role, int, Fraction]]]:
        """Per tensor of a layer, its role, the levels where it may start, and pJ of bringing it there."""
        whole, turn = self.operators(runs)
        passed = dict(runs.passed)
        ways: list[list[tuple[Role, int, Fraction]]] = []
        for tensor in turn.tensors:
            if tensor.name in passed:
                ways.append([(tensor.role, passed[tensor.name], Fraction(0))])
                continue
            ways.append([(tensor.role, 0, Fraction(0))])
            for index in range(1, shared_levels(self.engine) + 1):
                if tensor.role in self.engine.levels[index].keeps:
                    moved = self._moved(whole.tensor(tensor.name), whole, index)
                    ways[-1].append((tensor.role, index, moved))
        return ways

    def _floor_of(self, runs: LayerRuns) -> Fraction:
        """The floor of a layer's turns with residents' traffic, over all ways of its tensors.

        It is 0 where two results that a layer reads have homes in different levels: no mapping starts one
        role in both, which is found out where turns are solved.
        """
        return min(
            (
                self.floor(runs, tuple((role, level) for role, level, _ in chosen if level))
                + sum((moved for _, _, moved in chosen), Fraction(0))
                for chosen in product(*self._ways(runs))
                if len({(role, level) for role, level, _ in chosen}) == len({role for role, _, _ in chosen})
            ),
            default=Fraction(0),
        )

    def floor(self, runs: LayerRuns, homes: Homes) -> Fraction:
        """The floor of a layer's turns whose roles start in some levels; 0 where none is known."""
        if self.floors is None or not self.floors.begun:
            return Fraction(0)
        if (runs, homes) not in self._floors:
            turn = self.operators(runs)[1]
            visits = {tensor.name: self._visits(runs, tensor) for tensor in turn.tensors}
            least = self.floors.least(runs.layer, turn, runs.runs, dict(homes), visits)
            self._floors[runs, homes] = least
        return self._floors[runs, homes]

    def operations(self, runs: LayerRuns, turn: Operator) -> Fraction:
        """What all turns of a layer cost at least beside moving tensors."""
        return runs.runs * self.engines.loosened(runs.loose).operations(turn) + self._rows(runs)

    def inside(self, runs: LayerRuns, turn: Operator, tensor: Tensor, level: int) -> Fraction:
        """What a tensor costs at least in all turns of a layer.

        What no window slides over comes anew in every turn of the window.

        Parameters
        ----------
        runs, turn : the turns, and what those that add to the same sums compute
        tensor, level : which tensor, and where it starts
        """
        homes: Homes = ((tensor.role, level),) if level else ()
        engines = self.engines.loosened(runs.loose)
        least = engines.least_energy(turn, tensor, homes, self._visits(runs, tensor))
        return runs.runs * least + self._scaled(runs, tensor, level)

    def _visits(self, runs: LayerRuns, tensor: Tensor) -> int:
        """How often all of an operand comes anew while turns add to the same sums."""
        slides = dict(runs.slides)
        return 1 if tensor.is_output or tensor.dims & slides.keys() else math.prod(slides.values())

    def operators(self, runs: LayerRuns) -> tuple[Operator, Operator]:
        """What all turns, and what those that add to the same sums compute at least."""
        if runs not in self._operators:
            operator = self.group.operator(runs.layer)
            whole = sized(operator, dict(zip(operator.bounds, runs.needed, strict=True)))
            turn = sized(operator, dict(zip(operator.bounds, runs.sizes, strict=True)))
            self._operators[runs] = whole, replace(turn, turns=runs.sums)
        return self._operators[runs]

    def _layer(
        self, layer: str, loops: tuple[PlacedLoop, ...], homes: dict[str, int], made: dict[str, int]
    ) -> LayerRuns:
        """A layer's turns; a loop that it does not depend on runs it once at least.

        Parameters
        ----------
        layer, loops : and what stands around it
        homes : levels of the homes around it
        made : iterations of dimensions that windows slide over
        """
        operator = self.group.operator(layer)
        ranks = self.group.ranks
        dims = {ranks[layer, dim]: dim for dim in operator.bounds}
        needed = {dim: max(1, len(self.needs.elements[layer, dim])) for dim in operator.bounds}
        exact = needed == operator.bounds
        loose = {dim for dim, bound in operator.bounds.items() if needed[dim] != bound}
        # As if one turn made all halos.
        sizes = needed | made
        runs = sums = 1
        trips_of = dict.fromkeys(operator.bounds, 1)
        slides: dict[str, int] = {}
        for (loop, _), step in zip(loops, self.steps(layer, loops), strict=True):
            dim = dims.get(ranks[loop.layer, loop.dim])
            if dim is None or self.needs.is_windowed(layer, dim):
                exact = False
                loose |= {own for own in operator.bounds if self.needs.is_windowed(layer, own)}
                slides |= {own: max(slides.get(own, 1), new) for own, new in step.moves}
                continue
            ((_, trips),) = step.moves
            if sizes[dim] != trips * loop.tile:
                exact = False
                loose.add(dim)
            trips_of[dim] *= trips
            sizes[dim] = min(loop.tile, sizes[dim])
            if dim in operator.reduction_dims:
                sums *= trips
            else:
                runs *= trips
        passed = tuple(
            (tensor.name, home)
            for tensor in operator.tensors
            if (home := self._home(layer, tensor, homes)) is not None
        )
        # Turns in which a window finds something new may be those that a loop inside makes already.
        slid = tuple((d, n // trips_of[d]) for d, n in slides.items() if n // trips_of[d] > 1)
        return LayerRuns(
            layer,
            tuple(needed.values()),
            tuple(sizes.values()),
            sums,
            runs,
            passed,
            slid,
            exact,
            frozenset(loose),
        )

    def steps(self, layer: str, loops: tuple[PlacedLoop, ...]) -> tuple[Step, ...]:
        """Per loop around a layer, what it moves: its own loop, or the windows of its readers.

        Of loops within each other that slide the same window the outermost counts.
        """
        key = layer, loops
        if key not in self._steps:
            self._steps[key] = tuple(self._listed_steps(layer, loops))
        return self._steps[key]

    def _listed_steps(self, layer: str, loops: tuple[PlacedLoop, ...]) -> Iterator[Step]:
        operator, ranks = self.group.operator(layer), self.group.ranks
        dims = {ranks[layer, dim]: dim for dim in operator.bounds}
        sizes = {dim: max(1, len(self.needs.elements[layer, dim])) for dim in operator.bounds}
        slid: set[int] = set()
        for loop, below in loops:
            rank = ranks[loop.layer, loop.dim]
            dim = dims.get(rank)
            if dim is not None and not self.needs.is_windowed(layer, dim):
                yield Step(((dim, max(1, sizes[dim] // loop.tile)),), slides=False)
                sizes[dim] = min(loop.tile, sizes[dim])
            elif rank in slid or not all(r.reader in below for r in self.group.read_by(layer)):
                yield Step((), slides=True)
            else:
                slid.add(rank)
                bound = self.group.operator(loop.layer).bounds[loop.dim]
                news = [
                    (own, self._slides(layer, own, rank, bound, loop.tile)) for own in operator.output.dims
                ]
                yield Step(tuple((own, new) for own, new in news if new > 1), slides=True)

    def _slides(self, layer: str, dim: str, rank: int, bound: int, tile: int) -> int:
        """In how many tiles of a loop something new of a dimension is needed."""
        key = layer, dim, rank, bound, tile
        if key not in self._new:
            self._new[key] = self.needs.runs(layer, dim, rank, np.arange(tile, bound + 1, tile))
        return self._new[key]

    def _home(self, layer: str, tensor: Tensor, homes: dict[str, int]) -> int | None:
        reading = self.group.reading(layer, tensor.name)
        if reading is not None:
            return homes.get(reading.producer)
        if tensor.is_output and self.group.read_by(layer):
            return homes.get(layer)
        return None

    def _rows(self, layer: LayerRuns) -> Fraction:
        """pJ of the running maxima and sums of a layer that takes a softmax in parts, in all turns."""
        operand = next((operand for reader, operand in self.group.online if reader == layer.layer), None)
        level = dict(layer.passed).get(operand or "")
        if operand is None or level is None or layer.sums == 1:
            return Fraction(0)
        _, turn = self.operators(layer)
        along = self.group.online[layer.layer, operand]
        rows = math.prod(axis.extent(turn.bounds) for axis in across(turn.tensor(operand), along))
        words = WORDS * layer.runs * rows
        scaling = Scaling((layer.sums - 1) * words, layer.sums * words, 0)
        return rows_moved(self.engine, "", level, scaling).energy

    def _scaled(self, layer: LayerRuns, tensor: Tensor, level: int) -> Fraction:
        """pJ of scaling a result's sums for such a softmax in a level, in all turns; nothing for operands."""
        if not self.scales(layer, tensor):
            return Fraction(0)
        _, turn = self.operators(layer)
        number = layer.runs * (layer.sums - 1) * turn.output.footprint(turn.bounds)
        return sums_scaled(self.engine, "", level, number).energy

    def gain_by_turn(self, layer: LayerRuns, tensor: Tensor) -> bool:
        """Whether a resident with a tile of one turn may gain something; sums of a streamed result are scaled
        outside.
        """
        gains = self.engines.gain_by_turn(self.group.operator(layer.layer), tensor)
        return gains or self.scales(layer, tensor)

    def scales(self, layer: LayerRuns, tensor: Tensor) -> bool:
        """Whether a softmax in parts scales a result's sums."""
        online = any(reader == layer.layer for reader, _ in self.group.online)
        return online and tensor.is_output and layer.sums > 1

    def _moved(self, tensor: Tensor, whole: Operator, index: int) -> Fraction:
        """pJ of moving a whole tensor between the outermost level and a level where it is resident, once."""
        return movement_energy(self.engine, tensor, (0, index), (touched(whole, tensor), 0))


def paths(
    branch: Branch, loops: tuple[PlacedLoop, ...] = (), stores: tuple[SharedStore, ...] = ()
) -> list[tuple[Leaf, tuple[PlacedLoop, ...], tuple[SharedStore, ...]]]:
    """Every leaf with the loops and stores around it.

    Parameters
    ----------
    branch : of a tree
    loops, stores : outside it
    """
    below = frozenset(branch.layers())
    loops = (*loops, *((node, below) for node in branch.nodes if isinstance(node, SharedLoop)))
    stores = (*stores, *(node for node in branch.nodes if isinstance(node, SharedStore)))
    leaves: list[tuple[Leaf, tuple[PlacedLoop, ...], tuple[SharedStore, ...]]] = []
    for child in branch.children:
        if isinstance(child, Leaf):
            leaves.append((child, loops, stores))
        else:
            leaves += paths(child, loops, stores)
    return leaves
