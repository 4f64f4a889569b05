"""A bound on all candidates of a skeleton from trip counts alone, before its turns are listed.

Where intermediates are read element by element, all turns of a layer have one size.  Where a loop slides a
window over what a layer makes, its turns together make at least what is needed, and what does not depend on
the window is read anew in every turn in which something new is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tilewright.formulation.mapping.compulsory import touched
from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.running_rows import Scaling, rows_moved, sums_scaled
from tilewright.formulation.mapping.fused.shared_traffic import movement_energy
from tilewright.formulation.mapping.fused.softmax import WORDS, across
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.solvers.mapping.fused.home_room import HomeRooms
from tilewright.solvers.mapping.fused.needs import Needs
from tilewright.solvers.mapping.fused.skeletons import PlacedLoop
from tilewright.solvers.mapping.fused.turn_engine import Homes, TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Operator, Tensor


@dataclass(frozen=True)
class LayerRuns:
    """What the turns of one layer in a skeleton are at least.

    Parameters
    ----------
    layer : the layer
    needed : iterations per dimension that all turns together make
    sizes : iterations per dimension of the turns that add to the same sums, in one turn
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


class FirstBounds:
    """Bounds of skeletons of one group on one machine."""

    def __init__(self, group: FusedGroup, engines: TurnEngines) -> None:
        self.group, self.engines = group, engines
        self.engine = engine = engines.engine
        self.needs = Needs(group)
        self.homes = HomeRooms(group, engines, self.needs)
        self._levels = [level.name for level in engine.levels]
        self._by_path: dict[object, LayerRuns] = {}
        self._known: dict[LayerRuns, Fraction] = {}
        self._new: dict[tuple[str, str, int, int, int], int] = {}

    def fits(self, tree: Branch) -> bool:
        """Whether homes may have room for what they hold at once."""
        return self.homes.left(tree) is not None

    def bound(self, tree: Branch) -> Fraction:
        """No candidate of the skeleton takes less energy, in pJ."""
        return sum((self.least(runs) for runs in self.runs(tree)), Fraction(0))

    def runs(self, tree: Branch) -> list[LayerRuns]:
        """What the turns of every layer are at least."""
        layers: list[LayerRuns] = []
        for leaf, loops, stores in _paths(tree, (), ()):
            homes = {store.layer: self._levels.index(store.level) for store in stores}
            key = leaf.layer, loops, tuple(homes.items())
            runs = self._by_path.get(key)
            if runs is None:
                runs = self._by_path[key] = self._layer(leaf.layer, loops, homes)
            layers.append(runs)
        return layers

    def least(self, runs: LayerRuns) -> Fraction:
        """What a layer's turns take at least."""
        if runs not in self._known:
            whole, turn = self.operators(runs)
            self._known[runs] = runs.runs * self._one_run(whole, turn, runs)
        return self._known[runs]

    def operators(self, runs: LayerRuns) -> tuple[Operator, Operator]:
        """What all turns, and what those that add to the same sums compute at least."""
        operator = self.group.operator(runs.layer)
        whole = sized(operator, dict(zip(operator.bounds, runs.needed, strict=True)))
        turn = sized(operator, dict(zip(operator.bounds, runs.sizes, strict=True)))
        return whole, replace(turn, turns=runs.sums)

    def _layer(self, layer: str, loops: tuple[PlacedLoop, ...], homes: dict[str, int]) -> LayerRuns:
        """A layer's turns; a loop that it does not depend on runs it once at least."""
        operator = self.group.operator(layer)
        ranks = self.group.ranks
        dims = {ranks[layer, dim]: dim for dim in operator.bounds}
        needed = {dim: max(1, len(self.needs.elements[layer, dim])) for dim in operator.bounds}
        exact = needed == operator.bounds
        loose = {dim for dim, bound in operator.bounds.items() if needed[dim] != bound}
        sizes = dict(needed)
        runs = sums = 1
        trips_of = dict.fromkeys(operator.bounds, 1)
        slides: dict[str, int] = {}
        tiles: dict[int, int] = {}
        for loop, below in loops:
            rank = ranks[loop.layer, loop.dim]
            dim = dims.get(rank)
            if dim is None or self.needs.is_windowed(layer, dim):
                exact = False
                loose |= {own for own in operator.bounds if self.needs.is_windowed(layer, own)}
                if not all(reading.reader in below for reading in self.group.read_by(layer)):
                    continue
                bound = tiles.get(rank, self.group.operator(loop.layer).bounds[loop.dim])
                if rank not in tiles:  # of loops within each other the outermost counts
                    for own in operator.output.dims:
                        new = self._slides(layer, own, rank, bound, loop.tile)
                        slides[own] = max(slides.get(own, 1), new)
                tiles[rank] = loop.tile
                continue
            trips = max(1, sizes[dim] // loop.tile)
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

    def _one_run(self, whole: Operator, own: Operator, layer: LayerRuns) -> Fraction:
        """Of the turns that add to the same sums; residents are read from outside once in all runs.

        Parameters
        ----------
        whole, own : what all turns, and what these turns compute at least
        layer : the turns
        """
        passed, slides = dict(layer.passed), dict(layer.slides)
        engines = self.engines.loosened(layer.loose)
        energy = engines.operations(own) + self.rows(layer) / layer.runs
        for tensor in own.tensors:
            if tensor.name in passed:
                homes: Homes = ((tensor.role, passed[tensor.name]),)
                energy += self._least(engines, own, tensor, homes, slides)
                energy += self.scaled(layer, tensor, passed[tensor.name]) / layer.runs
                continue
            options = [
                self._least(engines, own, tensor, (), slides) + self.scaled(layer, tensor, 0) / layer.runs
            ]
            for index in range(1, shared_levels(self.engine) + 1):
                if tensor.role in self.engine.levels[index].keeps:
                    inside = self._least(engines, own, tensor, ((tensor.role, index),), slides)
                    once = self.moved(whole.tensor(tensor.name), whole, index)
                    once += self.scaled(layer, tensor, index)
                    options.append(inside + once / layer.runs)
            energy += min(options)
        return energy

    def rows(self, layer: LayerRuns) -> Fraction:
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

    def scaled(self, layer: LayerRuns, tensor: Tensor, level: int) -> Fraction:
        """pJ of scaling a result's sums for such a softmax in a level, in all turns; nothing for operands."""
        if not self.scales(layer, tensor):
            return Fraction(0)
        _, turn = self.operators(layer)
        number = layer.runs * (layer.sums - 1) * turn.output.footprint(turn.bounds)
        return sums_scaled(self.engine, "", level, number).energy

    def scales(self, layer: LayerRuns, tensor: Tensor) -> bool:
        """Whether a softmax in parts scales a result's sums."""
        online = any(reader == layer.layer for reader, _ in self.group.online)
        return online and tensor.is_output and layer.sums > 1

    def moved(self, tensor: Tensor, whole: Operator, index: int) -> Fraction:
        """pJ of moving a whole tensor between the outermost level and a level where it is resident, once."""
        return movement_energy(self.engine, tensor, (0, index), (touched(whole, tensor), 0))

    def _least(
        self, engines: TurnEngines, own: Operator, tensor: Tensor, homes: Homes, slides: dict[str, int]
    ) -> Fraction:
        """Of one tensor; what no window slides over comes anew in every turn of the window.

        Parameters
        ----------
        engines : that bound turns of this size
        own, tensor, homes : the turns, the tensor, and where it starts
        slides : in how many turns windows slide
        """
        visits = 1
        if not tensor.is_output and not tensor.dims & slides.keys():
            visits = math.prod(slides.values())
        return engines.least_energy(own, tensor, homes, visits)


def _paths(
    branch: Branch, loops: tuple[PlacedLoop, ...], stores: tuple[SharedStore, ...]
) -> list[tuple[Leaf, tuple[PlacedLoop, ...], tuple[SharedStore, ...]]]:
    """Every leaf with the loops and stores around it."""
    below = frozenset(branch.layers())
    loops = (*loops, *((node, below) for node in branch.nodes if isinstance(node, SharedLoop)))
    stores = (*stores, *(node for node in branch.nodes if isinstance(node, SharedStore)))
    paths: list[tuple[Leaf, tuple[PlacedLoop, ...], tuple[SharedStore, ...]]] = []
    for child in branch.children:
        if isinstance(child, Leaf):
            paths.append((child, loops, stores))
        else:
            paths += _paths(child, loops, stores)
    return paths
