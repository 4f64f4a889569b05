"""Fixed depth-first tiles: stacks of layers whose weights fit on chip, cut by the last one's output alone.

The rule is that of DeFiNES (Mei, Goetschalckx, Symons and Verhelst, HPCA 2023): a stack grows as long as its
weights fit in the largest memory on chip.  Its layers run tile by tile of the last layer's output, one size
of tile for the whole stack, and what neighbouring tiles share is recomputed or kept along one axis or both.
All sizes of tiles and all these modes are tried.  Reductions are never cut, and no sequence stands inside
another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tilewright import __version__
from tilewright.formulation.mapping.fused.arena import FusionArena, Names, TreeChoice
from tilewright.formulation.method import Outcome
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.fused.descent import flat_shapes
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True)
class DepthFirst:
    """Stacks by the size of their weights, every tile of the output and every mode of overlap."""

    modes: int = option(8, "orders of tiles and modes of overlap that are tried for each tile", low=1)

    name = "depth-first"
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, arena: FusionArena) -> Outcome:
        """Make the stacks in the network's order, and try every tile of each."""
        for names in self._stacks(arena):
            for shape in flat_shapes(arena, names):
                for tiles in self._tiles(arena, names, shape):
                    for mode in range(self.modes):
                        arena.price(names, TreeChoice(shape, tiles, mode))
        return Outcome()

    def _stacks(self, arena: FusionArena) -> list[Names]:
        """Groups of two layers or more, each layer in one at most, one for each kind."""
        groups, order = set(arena.groups()), arena.order()
        stacks: dict[int, Names] = {}
        stack: Names = ()
        for name in order:
            larger = (*stack, name)
            if stack and (larger not in groups or not _weights_fit(arena, larger)):
                if len(stack) > 1:
                    stacks.setdefault(arena.kind(stack), stack)
                larger = (name,)
            stack = larger
        if len(stack) > 1:
            stacks.setdefault(arena.kind(stack), stack)
        return [*stacks.values()]

    def _tiles(self, arena: FusionArena, names: Names, shape: int) -> list[tuple[int, ...]]:
        """Places of tiles: all of loops over the last layer's output, the whole of others."""
        last = arena.group(names).operator(names[-1])
        menus = arena.menus(names, shape)
        places = [
            range(len(menu.tiles)) if menu.layer == names[-1] and menu.dim in last.output.dims else range(1)
            for menu in menus
        ]
        return [*product(*places)]


def _weights_fit(arena: FusionArena, names: Names) -> bool:
    """Whether the weights of a group fit in the largest memory that all turns see."""
    group, engine = arena.group(names), arena.engine
    weights = sum(
        tensor.footprint(group.operator(name).bounds)
        for name in names
        for tensor in group.operator(name).tensors
        if tensor.role is Role.WEIGHT and group.reading(name, tensor.name) is None
    )
    largest = 0
    for index, level in enumerate(engine.levels):
        if index and Role.WEIGHT in level.keeps:
            if level.capacity is None:
                return not level.partitions or weights <= level.partitions.get(Role.WEIGHT, weights)
            largest = max(largest, level.capacity)
        if level.fanout is not None:
            break
    return weights <= largest
