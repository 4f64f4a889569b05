"""Bounds of trees that know the room of every level, before all their loops are decided.

The outermost loops are in order; loops of inner sequences may stand in any order, and of some it is not
decided yet whether there are any.  A store among those takes no more room than it must, and comes as often
as the loops outside say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, combinations

from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop
from tilewright.solvers.mapping.fused.floors.first_bound import LayerRuns, Step
from tilewright.solvers.mapping.fused.floors.room_bounds import RoomBounds, passes
from tilewright.solvers.mapping.fused.floors.room_choice import Option, RoomChoice, RoomLayer, undominated
from tilewright.solvers.mapping.fused.trees.skeletons import Cut, OuterOrder, PlacedLoop
from tilewright.solvers.mapping.fused.trees.turn_engine import residences
from tilewright.workloads.mapping.operator import Tensor


@dataclass(frozen=True)
class OpenPath:
    """What stands around a layer.

    Parameters
    ----------
    layer : the layer
    outer : loops of the outermost sequence, in order
    inner : loops of further sequences around it
    undecided : ranks of loops that these may have beside
    beside : layers of the innermost sequence around it
    """

    layer: str
    outer: tuple[PlacedLoop, ...]
    inner: tuple[PlacedLoop, ...]
    undecided: frozenset[int]
    beside: frozenset[str]


@dataclass
class StemRooms:
    """Bounds of stems of one group on one machine.

    Parameters
    ----------
    rooms : bounds of trees whose loops are all in order
    divides : whether a loop's tile divides the one around it
    check : called on the way; raises where the search must end
    """

    rooms: RoomBounds
    divides: bool
    check: Callable[[], None] = lambda: None
    _layers: dict[object, RoomLayer] = field(default_factory=dict)

    def bound(self, tree: Branch, cuts: tuple[Cut, ...], most: Fraction | None) -> Fraction | None:
        """No candidate takes less; ``None`` where none that fits takes less than ``most``.

        Parameters
        ----------
        tree : with its outermost loops in order and homes in place among them, without residents; other homes
            stand inside all loops of their sequences
        cuts : the loops that inner sequences may have beside those that they have
        most : pJ; what takes as much is of no interest
        """
        rooms, first = self.rooms, self.rooms.first
        left = first.homes.left(tree, cuts)
        if left is None:
            return None
        all_runs = first.runs(tree, 1)
        layers = [
            self._layer(runs, path) for runs, path in zip(all_runs, open_paths(tree, cuts), strict=True)
        ]
        rooms_left = [left[runs.layer] for runs in all_runs]
        choice = RoomChoice(
            layers, rooms_left, [0] * len(layers), lambda at, homes: rooms.floor(all_runs[at], homes)
        )
        chosen = choice.least(None if most is None else rooms.scaled(most))
        return None if chosen is None else Fraction(chosen[0], rooms.scale)

    def orders(
        self, tree: Branch, cuts: tuple[Cut, ...], orders: Iterable[OuterOrder], most: Fraction | None
    ) -> Iterator[tuple[Fraction, OuterOrder]]:
        """Those of some orders of the outermost loops that may take less than ``most``, with their bounds.

        Parameters
        ----------
        tree, cuts, most : as for :meth:`bound`, with the outermost loops in any order
        orders : of these
        """
        for nodes in orders:
            self.check()
            least = self.bound(replace(tree, nodes=nodes), cuts, most)
            if least is not None:
                yield least, nodes

    def _layer(self, runs: LayerRuns, path: OpenPath) -> RoomLayer:
        """What a layer's turns take whatever is resident, and the ways of its tensors."""
        key = runs, path
        if key not in self._layers:
            ordered = self.rooms.layer(runs, path.outer)
            if path.inner or path.undecided:
                passed = dict(runs.passed)
                tensors = [t for t in self.rooms.first.operators(runs)[1].tensors if t.name not in passed]
                ways = tuple(
                    (role, undominated((*options, *self._further_inside(runs, path, tensor))))
                    for tensor, (role, options) in zip(tensors, ordered.tensors, strict=True)
                )
                ordered = RoomLayer(ordered.fixed, ordered.homes, ways)
            self._layers[key] = ordered
        return self._layers[key]

    def _further_inside(self, runs: LayerRuns, path: OpenPath, tensor: Tensor) -> Iterator[Option]:
        """A tensor resident inside all outermost loops, behind any loops of inner sequences."""
        rooms, first, layer = self.rooms, self.rooms.first, path.layer
        steps = first.steps(layer, (*path.outer, *path.inner))
        outer, inner = steps[: len(path.outer)], steps[len(path.outer) :]
        loops = [(*placed, step) for placed, step in zip(self._tiles(path.inner), inner, strict=True)]
        loops += [(rank, 1, self._undecided(layer, rank)) for rank in path.undecided]
        tiles = dict(self._tiles(path.outer))
        for rank, tile, step in loops:
            if not _moves(step, tensor):
                tiles[rank] = min(tile, tiles.get(rank, tile))
        moving = [loop for loop in loops if _moves(loop[2], tensor)]
        names = first.group.names
        whole = first.gain_by_turn(runs, tensor)
        beside = {layer} if whole else path.beside
        around = tuple(index for index, name in enumerate(names) if name in beside)
        for outside in chain.from_iterable(combinations(moving, number) for number in range(len(moving) + 1)):
            held = dict(tiles)
            for rank, tile, _ in outside:
                held[rank] = min(tile, held.get(rank, tile))
            # What does not move the tensor may stand further inside than what does.
            around_it = *outer, *(step for _, _, step in outside)
            times = passes(tensor, around_it, len(around_it))
            for level in residences(rooms.engine, tensor.role):
                yield Option(
                    rooms.traffic(runs, tensor, level, times),
                    rooms.turns(runs, tensor, level),
                    level,
                    rooms.place(tensor.role, level),
                    rooms.held(layer, tensor, level, held),
                    around,
                )

    def _tiles(self, loops: tuple[PlacedLoop, ...]) -> list[tuple[int, int]]:
        """Ranks and tiles."""
        ranks = self.rooms.first.group.ranks
        return [(ranks[loop.layer, loop.dim], loop.tile) for loop, _ in loops]

    def _undecided(self, layer: str, rank: int) -> Step:
        """What a loop that may be there moves of a layer's own loops."""
        first = self.rooms.first
        operator = first.group.operator(layer)
        for dim, bound in operator.bounds.items():
            if first.group.ranks[layer, dim] == rank and not first.needs.is_windowed(layer, dim):
                all_needed = len(first.needs.elements[layer, dim]) == bound
                return Step(((dim, 2 if self.divides and all_needed else 1),), slides=False)
        return Step((), slides=True)


def _moves(step: Step, tensor: Tensor) -> bool:
    """Whether a loop moves a tensor from one tile to another, and slides no window."""
    return not step.slides and any(trips > 1 and dim in tensor.dims for dim, trips in step.moves)


def open_paths(tree: Branch, cuts: tuple[Cut, ...]) -> Iterator[OpenPath]:
    """What stands around every layer of a tree, in its order.

    Parameters
    ----------
    tree : with its outermost loops in order
    cuts : loops that inner sequences may have beside
    """
    yield from _paths(tree, cuts, (), None)


def _paths(
    branch: Branch, cuts: tuple[Cut, ...], place: tuple[int, ...], around: OpenPath | None
) -> Iterator[OpenPath]:
    """The same for a branch at a place of the tree."""
    beside = frozenset(branch.layers())
    loops = tuple((node, beside) for node in branch.nodes if isinstance(node, SharedLoop))
    if around is None:
        around = OpenPath("", loops, (), frozenset(), beside)
    else:
        own = frozenset(cut.rank for cut in cuts if cut.place == place)
        around = OpenPath("", around.outer, (*around.inner, *loops), around.undecided | own, beside)
    for index, child in enumerate(branch.children):
        if isinstance(child, Leaf):
            yield replace(around, layer=child.layer)
        else:
            yield from _paths(child, cuts, (*place, index), around)
