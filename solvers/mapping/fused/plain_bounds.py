"""Bounds of skeletons that are read element by element, from trip counts and the room of every level.

Where no window lies between layers, all turns of a layer are alike, so what a resident moves and the room
that it takes are products of tiles and trips.  Residents that a level must hold at once share its room with
the homes around the same turns; what is streamed takes none here.  So the bound lies below every candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.mapping.compulsory import touched
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile, room_bits
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.first_bound import FirstBounds, LayerRuns
from tilewright.solvers.mapping.fused.turn_engine import shared_levels
from tilewright.workloads.mapping.operator import Operator, Tensor

Step = tuple[int, int, int]
"""A loop around a leaf: its rank, its trips, and the tile that is left inside."""

Taken = dict[tuple[str, int], int]
"""Bits that shared stores take in a layer's turns, by the layer and the level."""


@dataclass(frozen=True)
class _Path:
    """A leaf's surroundings.

    Parameters
    ----------
    layer : the leaf's
    steps : loops around it, outermost first
    below : the layers below the innermost place behind so many loops, the one outside all loops first
    homes : homes that are alive in its turns, and the number of loops outside each
    """

    layer: str
    steps: tuple[Step, ...]
    below: tuple[frozenset[str], ...]
    homes: tuple[tuple[SharedStore, int], ...]


@dataclass(frozen=True)
class _Option:
    """One way of a tensor to its turns.

    Parameters
    ----------
    least : pJ at least, of its traffic and all its layer's turns
    level, bits : where it is resident and the room that it takes; level 0 for a streamed tensor
    around : layers in whose turns it takes room
    """

    least: Fraction
    level: int
    bits: int
    around: frozenset[str]


class PlainBounds:
    """Bounds of the skeletons of one group without windows on one machine.

    Parameters
    ----------
    group, engine : the layers and the machine
    first : bounds of the turns themselves
    """

    def __init__(self, group: FusedGroup, engine: Engine, first: FirstBounds) -> None:
        self.group, self.engine, self.first = group, engine, first
        self._levels = [level.name for level in engine.levels]
        self._options: dict[object, list[_Option]] = {}
        self._rooms = {
            index: room
            for index in range(1, shared_levels(engine) + 1)
            if (room := room_bits(engine, engine.levels[index], None)) is not None
            and not engine.levels[index].partitions
        }

    def bound(self, tree: Branch, most: Fraction | None) -> Fraction | None:
        """No candidate takes less, in pJ; ``None`` where none that fits takes less than ``most``.

        Parameters
        ----------
        tree : with homes, without residents
        most : pJ; what takes as much is of no interest
        """
        fixed = Fraction(0)
        taken: Taken = {}
        options: list[list[_Option]] = []
        layers = self.first.runs(tree)
        ranks = self.group.ranks.items()
        tiles = {rank: self.group.operator(name).bounds[dim] for (name, dim), rank in ranks}
        for path, runs in zip(self._paths(tree, _Path("", (), (), ()), tiles), layers, strict=True):
            whole, turn = self.first.operators(runs)
            fixed += runs.runs * self.engine.mac_energy * turn.turns * turn.iterations + self.first.rows(runs)
            for store, depth in path.homes:
                output, place = self.group.operator(store.layer).output, self._levels.index(store.level)
                bits = self._bits(place, output, self._held(store.layer, output, path.steps[:depth]))
                taken[path.layer, place] = taken.get((path.layer, place), 0) + bits
            passed = dict(runs.passed)
            for tensor in turn.tensors:
                if tensor.name not in passed:
                    options.append(self._ways(runs, path, tensor, (whole, turn)))
                    continue
                fixed += self._turns(runs, turn, tensor, passed[tensor.name])
                fixed += self.first.scaled(runs, tensor, passed[tensor.name])
                if tensor.is_output and path.layer in self.group.leaving:
                    each = self.engine.levels[0].write_energy_of(tensor.role)
                    fixed += each * tensor.footprint(whole.bounds)
        return self._cheapest(fixed, options, taken, most)

    def _paths(self, branch: Branch, around: _Path, tiles: dict[int, int]) -> Iterator[_Path]:
        """Every leaf's surroundings, in the order of the leaves."""
        layers = frozenset(branch.layers())
        steps, homes, tiles = list(around.steps), list(around.homes), dict(tiles)
        own: list[tuple[SharedStore, int]] = []
        for node in branch.nodes:
            if isinstance(node, SharedStore):
                own.append((node, len(steps)))
                continue
            rank = self.group.ranks[node.layer, node.dim]
            steps.append((rank, tiles[rank] // node.tile, node.tile))
            tiles[rank] = node.tile
        here = 1 + sum(isinstance(node, SharedLoop) for node in branch.nodes)
        below = (*around.below[:-1], *(layers for _ in range(here)))
        child_of = {
            name: index
            for index, child in enumerate(branch.children)
            for name in ([child.layer] if isinstance(child, Leaf) else child.layers())
        }
        for index, child in enumerate(branch.children):
            alive = [
                (store, depth)
                for store, depth in own
                if child_of[store.layer]
                <= index
                <= max(child_of[r.reader] for r in self.group.read_by(store.layer))
            ]
            inside = _Path("", tuple(steps), below, (*homes, *alive))
            if isinstance(child, Leaf):
                yield replace(inside, layer=child.layer)
            else:
                yield from self._paths(child, inside, tiles)

    def _turns(self, runs: LayerRuns, turn: Operator, tensor: Tensor, level: int) -> Fraction:
        """What a tensor that starts in a level costs in all turns."""
        homes = ((tensor.role, level),) if level else ()
        engines = self.first.engines.loosened(runs.loose)
        return runs.runs * engines.least_energy(turn, tensor, homes)

    def _ways(
        self, runs: LayerRuns, path: _Path, tensor: Tensor, operators: tuple[Operator, Operator]
    ) -> list[_Option]:
        """Streamed, or resident in a level at some depth; those that cost less first."""
        key = runs, path.steps, path.below, tensor.name
        known = self._options.get(key)
        if known is None:
            known = self._options[key] = sorted(
                self._listed(runs, path, tensor, operators), key=lambda option: option.least
            )
        return known

    def _listed(
        self, runs: LayerRuns, path: _Path, tensor: Tensor, operators: tuple[Operator, Operator]
    ) -> Iterator[_Option]:
        whole, turn = operators
        streamed = self._turns(runs, turn, tensor, 0) + self.first.scaled(runs, tensor, 0)
        yield _Option(streamed, 0, 0, frozenset())
        own = {self.group.ranks[path.layer, dim] for dim in tensor.dims}
        # A layer runs at least once in all turns of a loop that it does not depend on.
        known = {self.group.ranks[path.layer, dim] for dim in whole.bounds}
        footprint = tensor.footprint(whole.bounds)
        # Inside all loops a resident is what a streamed tensor may be as well, unless its sums are scaled.
        for depth in range(max(1, len(path.steps) + self.first.scales(runs, tensor))):
            around = path.steps[:depth]
            moving = [place for place, (rank, _, _) in enumerate(around) if rank in own]
            outside = around[: moving[-1] + 1] if moving else ()
            visits = math.prod(trips for rank, trips, _ in outside if rank in known)
            tile = self._held(path.layer, tensor, around)
            # Of a window that slides a part may be in place already; all that is touched comes at least once.
            plain = not any(axis.is_compound for axis in tensor.axes)
            moved = visits * tile if plain else touched(whole, tensor)
            for index in range(1, shared_levels(self.engine) + 1):
                if tensor.role in self.engine.levels[index].keeps:
                    yield _Option(
                        self._traffic(tensor, index, moved, max(0, moved - footprint))
                        + self.first.scaled(runs, tensor, index)
                        + self._turns(runs, turn, tensor, index),
                        index,
                        self._bits(index, tensor, tile),
                        path.below[depth] | {path.layer},
                    )

    def _traffic(self, tensor: Tensor, index: int, moved: int, again: int) -> Fraction:
        """pJ of moving elements of a resident, and sums of a result in again."""
        outermost, level, role = self.engine.levels[0], self.engine.levels[index], tensor.role
        inwards = outermost.read_energy_of(role) + level.write_energy_of(role)
        if not tensor.is_output:
            return moved * inwards
        drain = level.read_energy_of(role) if level.timing.drained else Fraction(0)
        return moved * (outermost.write_energy_of(role) + drain) + again * inwards

    def _held(self, layer: str, tensor: Tensor, steps: tuple[Step, ...]) -> int:
        """Elements of a tensor that all turns inside some loops need."""
        tiles = {rank: tile for rank, _, tile in steps}
        bounds = self.group.operator(layer).bounds
        ranks = self.group.ranks
        return tensor.footprint({dim: tiles.get(ranks[layer, dim], bound) for dim, bound in bounds.items()})

    def _bits(self, index: int, tensor: Tensor, elements: int) -> int:
        return bits_of_tile(self.engine, self.engine.levels[index], tensor.role, elements)

    def _cheapest(
        self, fixed: Fraction, options: list[list[_Option]], taken: Taken, most: Fraction | None
    ) -> Fraction | None:
        """The least sum of one option for each tensor whose residents fit together."""
        rest = [Fraction(0)]
        for own in reversed(options):
            rest.insert(0, rest[0] + own[0].least)
        best = most

        def further(at: int, least: Fraction, taken: Taken) -> None:
            nonlocal best
            if at == len(options):
                best = least
                return
            for option in options[at]:
                if best is not None and least + option.least + rest[at + 1] >= best:
                    return
                after = taken
                if option.level in self._rooms:
                    after = dict(taken)
                    for layer in option.around:
                        after[layer, option.level] = after.get((layer, option.level), 0) + option.bits
                if self._fits(after):
                    further(at + 1, least + option.least, after)

        if self._fits(taken):
            further(0, fixed, taken)
        return None if best is most else best

    def _fits(self, taken: Taken) -> bool:
        return all(bits <= self._rooms.get(level, bits) for (_, level), bits in taken.items())
