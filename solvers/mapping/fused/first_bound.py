"""A bound on all candidates of a skeleton from trip counts alone, before its turns are listed.

Where intermediates are read element by element, all turns of a layer have one size.  Where a loop slides a
window over what a layer makes, its turns together make at least what is needed, and what does not depend on
the window is read anew in every turn in which something new is needed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tilewright.formulation.mapping.compulsory import touched
from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.needs import Needs
from tilewright.solvers.mapping.fused.turn_engine import Homes, TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Operator, Tensor

PlacedLoop = tuple[SharedLoop, frozenset[str]]
"""A shared loop and the layers below it."""


class FirstBounds:
    """Bounds of skeletons of one group on one machine."""

    def __init__(self, group: FusedGroup, engine: Engine) -> None:
        self.group = group
        self.engine = engine
        self.engines = TurnEngines(engine)
        self.needs = Needs(group)
        self._known: dict[object, Fraction] = {}

    def bound(self, tree: Branch) -> Fraction:
        """No candidate of the skeleton takes less energy, in pJ."""
        homes: dict[str, int] = {}
        levels = [level.name for level in self.engine.levels]
        total = Fraction(0)
        for leaf, loops, stores in _paths(tree, (), ()):
            for store in stores:
                homes[store.layer] = levels.index(store.level)
            total += self._layer(leaf.layer, loops, homes)
        return total

    def _layer(self, layer: str, loops: tuple[PlacedLoop, ...], homes: dict[str, int]) -> Fraction:
        """A layer's turns; a loop that it does not depend on runs it once at least."""
        operator = self.group.operator(layer)
        ranks = self.group.ranks
        dims = {ranks[layer, dim]: dim for dim in operator.bounds}
        needed = {dim: max(1, len(self.needs.elements[layer, dim])) for dim in operator.bounds}
        sizes = dict(needed)
        runs = sums = 1
        trips_of = dict.fromkeys(operator.bounds, 1)
        slides: dict[str, int] = {}
        tiles: dict[int, int] = {}
        for loop, below in loops:
            rank = ranks[loop.layer, loop.dim]
            dim = dims.get(rank)
            if dim is None or self.needs.is_windowed(layer, dim):
                if not all(reading.reader in below for reading in self.group.read_by(layer)):
                    continue
                bound = tiles.get(rank, self.group.operator(loop.layer).bounds[loop.dim])
                if rank not in tiles:  # of loops within each other the outermost counts
                    ends = np.arange(loop.tile, bound + 1, loop.tile)
                    for own in operator.output.dims:
                        slides[own] = max(slides.get(own, 1), self.needs.runs(layer, own, rank, ends))
                tiles[rank] = loop.tile
                continue
            trips = max(1, sizes[dim] // loop.tile)
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
        key = layer, tuple(sizes.values()), sums, passed, runs, slid
        least = self._known.get(key)
        if least is None:
            turn = replace(sized(operator, sizes), turns=sums)
            least = self._known[key] = runs * self._one_run(
                sized(operator, needed), turn, dict(passed), runs, dict(slid)
            )
        return least

    def _home(self, layer: str, tensor: Tensor, homes: dict[str, int]) -> int | None:
        reading = self.group.reading(layer, tensor.name)
        if reading is not None:
            return homes.get(reading.producer)
        if tensor.is_output and self.group.read_by(layer):
            return homes.get(layer)
        return None

    def _one_run(
        self, whole: Operator, own: Operator, passed: dict[str, int], runs: int, slides: dict[str, int]
    ) -> Fraction:
        """Of the turns that add to the same sums; residents are read from outside once in all runs.

        Parameters
        ----------
        whole, own : what all turns, and what these turns compute at least
        passed : homes of intermediates
        runs : how often there are such turns
        slides : per dimension over which a window slides, in how many turns
        """
        engine = self.engine
        energy = engine.mac_energy * own.turns * own.iterations
        for tensor in own.tensors:
            if tensor.name in passed:
                homes: Homes = ((tensor.role, passed[tensor.name]),)
                energy += self._least(own, tensor, homes, slides)
                continue
            streamed = self._least(own, tensor, (), slides)
            elements = touched(whole, whole.tensor(tensor.name))
            outermost = engine.levels[0]
            options = [streamed]
            for index in range(1, shared_levels(engine) + 1):
                level = engine.levels[index]
                if tensor.role in level.keeps:
                    if tensor.is_output:
                        moved = elements * outermost.write_energy_of(tensor.role)
                    else:
                        moved = elements * (
                            outermost.read_energy_of(tensor.role) + level.write_energy_of(tensor.role)
                        )
                    inside = self._least(own, tensor, ((tensor.role, index),), slides)
                    options.append(inside + moved / runs)
            energy += min(options)
        return energy

    def _least(self, own: Operator, tensor: Tensor, homes: Homes, slides: dict[str, int]) -> Fraction:
        """Of one tensor; what no window slides over comes anew in every turn of the window."""
        least = self.engines.least_energy(own, tensor, homes)
        again = math.prod(number for dim, number in slides.items() if dim not in tensor.dims) - 1
        if not again or tensor.is_output or tensor.dims & slides.keys():
            return least
        home = dict(homes).get(tensor.role, 0)
        levels = self.engine.levels
        if not any(tensor.role in level.keeps for level in levels[home + 1 :]):
            # The home serves every operation; that is no less than every element in every turn.
            fresh = (again + 1) * own.turns * touched(own, tensor)
            return max(least, fresh * levels[home].read_energy_of(tensor.role))
        each = levels[home].read_energy_of(tensor.role) + sum(
            (
                level.write_energy_of(tensor.role)
                for level in levels[home + 1 :]
                if tensor.role in level.keeps - level.may_bypass
            ),
            Fraction(0),
        )
        return least + again * own.turns * touched(own, tensor) * each


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
