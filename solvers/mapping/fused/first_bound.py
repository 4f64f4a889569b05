"""A bound on all candidates of a skeleton from trip counts alone, before its turns are listed.

It speaks of groups whose intermediates are read element by element, under tiles that divide each other: then
all turns of a layer have one size.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.mapping.fused.evaluator import sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.turn_engine import Homes, TurnEngines, shared_levels
from tilewright.workloads.mapping.operator import Operator, Tensor


class FirstBounds:
    """Bounds of skeletons of one group on one machine."""

    def __init__(self, group: FusedGroup, engine: Engine) -> None:
        self.group = group
        self.engine = engine
        self.engines = TurnEngines(engine)
        self._known: dict[tuple[str, tuple[int, ...], int, tuple[tuple[str, int], ...]], Fraction] = {}

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

    def _layer(self, layer: str, loops: tuple[SharedLoop, ...], homes: dict[str, int]) -> Fraction:
        """A layer's turns; a loop that it does not depend on runs it once at least."""
        operator = self.group.operator(layer)
        ranks = self.group.ranks
        dims = {ranks[layer, dim]: dim for dim in operator.bounds}
        sizes = dict(operator.bounds)
        runs = sums = 1
        for loop in loops:
            dim = dims.get(ranks[loop.layer, loop.dim])
            if dim is None:
                continue
            trips = sizes[dim] // loop.tile
            sizes[dim] = loop.tile
            if dim in operator.reduction_dims:
                sums *= trips
            else:
                runs *= trips
        passed = tuple(
            (tensor.name, home)
            for tensor in operator.tensors
            if (home := self._home(layer, tensor, homes)) is not None
        )
        key = layer, tuple(sizes.values()), sums, passed
        least = self._known.get(key)
        if least is None:
            own = replace(sized(operator, sizes), turns=sums)
            least = self._known[key] = runs * self._one_run(operator, own, dict(passed), runs)
        return least

    def _home(self, layer: str, tensor: Tensor, homes: dict[str, int]) -> int | None:
        reading = self.group.reading(layer, tensor.name)
        if reading is not None:
            return homes.get(reading.producer)
        if tensor.is_output and self.group.read_by(layer):
            return homes.get(layer)
        return None

    def _one_run(self, whole: Operator, own: Operator, passed: dict[str, int], runs: int) -> Fraction:
        """Of the turns that add to the same sums; residents are read from outside once in all runs."""
        engine = self.engine
        energy = engine.mac_energy * own.turns * own.iterations
        for tensor in own.tensors:
            if tensor.name in passed:
                homes: Homes = ((tensor.role, passed[tensor.name]),)
                energy += self.engines.least_energy(own, tensor, homes)
                continue
            streamed = self.engines.least_energy(own, tensor, ())
            elements = whole.tensor(tensor.name).footprint(whole.bounds)
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
                    inside = self.engines.least_energy(own, tensor, ((tensor.role, index),))
                    options.append(inside + moved / runs)
            energy += min(options)
        return energy


def _paths(
    branch: Branch, loops: tuple[SharedLoop, ...], stores: tuple[SharedStore, ...]
) -> list[tuple[Leaf, tuple[SharedLoop, ...], tuple[SharedStore, ...]]]:
    """Every leaf with the loops and stores around it."""
    loops = (*loops, *(node for node in branch.nodes if isinstance(node, SharedLoop)))
    stores = (*stores, *(node for node in branch.nodes if isinstance(node, SharedStore)))
    paths: list[tuple[Leaf, tuple[SharedLoop, ...], tuple[SharedStore, ...]]] = []
    for child in branch.children:
        if isinstance(child, Leaf):
            paths.append((child, loops, stores))
        else:
            paths += _paths(child, loops, stores)
    return paths
