"""All open (unpruned) trees over a set of layers.

The classes of subtrees (`subtrees.py`) bound what trees take; this module makes the trees of a class, from
the top down, where every subtree has its place.  Children of S cuts stand in every order in which producers
come first; one order of the children of a T cut represents all with the same direct reads (`members.py`).
Pruned are

- trees over budget: the budget of a subtree is the limit less what the leaves before it spend, mapped as they
  will be, and less the least that those after it spend;
- trees that do not fit the buffers in any order of the children of T cuts;
- T cuts that hold a T cut without subbatches whose children may as well be their own.  Energies, cycles and
  processing times are the same, as long as all direct reads stay direct.  Buffers hold no more: neighbours
  among more children are fewer layers each, and what waits for one child of the inner cut waits for the whole
  of it otherwise.  So the flat tree, which is enumerated too, is as good within every tree.  Which reads stay
  direct depends only on which are direct, so this holds for all orders or for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.instance import HUGE
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.trees.members import Members
from tilewright.solvers.scheduling.tiled.set.trees.subtree_terms import Asked, Limit, Subtrees, Way
from tilewright.solvers.scheduling.tiled.set.trees.subtrees import SLACK, SubtreeClasses

Placement = tuple[tuple[Subtrees, ...], tuple[tuple[int, int], ...], tuple[float, ...]]
"""Children of a cut in one order, the first tile and tiles of each, and pJ of hops of what siblings pass on
to each.
"""


@dataclass(frozen=True, slots=True)
class OpenTree:
    """A tree in its place.

    Parameters
    ----------
    energy : pJ for the whole batch
    cycles, moved : of one run, cycles (but for those of links) and bytes of DRAM
    buffer, inputs, weights : bytes per tile, as of `NodeCost`; those of the buffer at least, in whichever
        order the children of T cuts stand
    """

    node: Node
    energy: float
    cycles: float
    moved: float
    buffer: Int64s
    inputs: Int64s
    weights: Int64s


Remembered = tuple[OpenTree, tuple[tuple[int, int], ...]]
"""A tree, and the layouts of those of its layers whose results others read."""

MOST_TREES, MOST_TREES_KEPT = 20_000, 100_000
"""Limits on cached trees: of one class in one place, and of all."""


class OpenTrees:
    """Open trees over sets of layers as children of a root T cut.

    Parameters
    ----------
    loads : samples for which weights are loaded once
    stop : whether the time is up; the trees are then incomplete
    """

    def __init__(
        self,
        form: ClosedForm,
        lower_bounds: LayerBounds,
        loads: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.form, self.loads, self.stop = form, loads, stop
        self._layouts: dict[int, int] = {}
        self._direct: dict[tuple[int, int, int], bool] = {}
        self.classes = SubtreeClasses(form, lower_bounds, loads, stop)
        self.rows = self.classes.rows
        self.members = Members(form.dataflow, self.rows.any_order)
        self._outputs = sum(1 << i for i, layer in enumerate(form.network.layers) if layer.is_output)
        self._dissolved: dict[tuple[tuple[int, ...], int, int], bool] = {}
        self._known: dict[tuple[Way, int, int], list[Placement]] = {}
        self._leaves: dict[tuple[object, ...], tuple[OpenTree | None, int]] = {}
        self._trees_known: dict[tuple[object, ...], tuple[float, float, list[Remembered] | None]] = {}
        self._trees_kept = 0

    def segment(self, mask: int, samples: int) -> Asked:
        """What a child of a root T cut is: everything around it goes through DRAM."""
        stored = self._outputs
        for layer, (_, after) in enumerate(self.form.network.masks):
            if after & ~mask:
                stored |= 1 << layer
        return Asked(mask, samples, stored & mask, self.rows.crossing(mask), False, whole=True)

    def over(
        self, mask: int, samples: int, energy: float, cycles: float, number: int = 0
    ) -> Iterator[OpenTree]:
        """Trees whose cuts have at least two children, within limits of energy and cycles.

        Parameters
        ----------
        mask : layers that can follow each other without any other between them, as a set of bits
        energy, cycles : pJ of the whole batch, cycles of one run
        number : of the limit, as of `Limit`
        """
        places = self.classes.places
        none, whole = np.full(len(places), -np.inf), places.whole
        spend, last = none.copy(), none
        spend[whole], last[whole] = energy * SLACK, cycles * SLACK
        for subtrees in self.classes.of(self.segment(mask, samples), Limit(spend, last, number)):
            yield from self._trees(subtrees, 0, places.total, energy * SLACK, cycles * SLACK, None)

    def _place(self, first: int, tiles: int) -> int:
        places = self.classes.places
        return int(places.begin[tiles]) + first * places.apart

    def _trees(
        self,
        group: Subtrees,
        first: int,
        tiles: int,
        energy: float,
        cycles: float,
        outer: tuple[Way, int] | None,
    ) -> Iterator[OpenTree]:
        """All trees of a class in one place within their budget.

        Layouts of all leaves before it are known, and those of its own until the next tree is asked for.

        Parameters
        ----------
        outer : the cut around it, and its number among the children
        """
        place = self._place(first, tiles)
        if self.stop():
            return
        if group.taken.energy[place] > energy or group.taken.cycles[place] > cycles:
            return
        if not group.ways:
            leaf = self._leaf(group.asked, first, tiles)
            if leaf is not None and leaf.energy <= energy and leaf.cycles <= cycles:
                yield leaf
            return
        known = None if outer is None else self._remembered(group, first, tiles, energy, cycles, outer)
        if known is None:
            yield from self._made(group, first, tiles, energy, cycles, outer)
            return
        for tree, layouts in known:
            if tree.energy > energy:
                return
            if tree.cycles <= cycles:
                self._layouts.update(layouts)
                yield tree

    def _remembered(
        self, group: Subtrees, first: int, tiles: int, energy: float, cycles: float, outer: tuple[Way, int]
    ) -> list[Remembered] | None:
        """Trees of a class in one place within their budget, and perhaps more, by rising energy.

        ``None`` where they are too many to cache.

        They depend on the layouts that they read directly, and on which of them are needless in the cut
        around them.
        """
        asked = group.asked
        direct = self.rows.crossing(asked.mask) & ~asked.fetched
        read = tuple(
            self._layouts[read_layer.producer]
            for read_layer in self.rows.reads
            if direct >> read_layer.number & 1
        )
        way, at = outer
        beside = self._beside(way, at) if way.kind == "T" else None
        key = group, first, tiles, read, beside
        known = self._trees_known.get(key)
        if known is not None:
            most, last, trees = known
            if energy <= most and cycles <= last:
                return trees
            energy, cycles = max(energy, most), max(cycles, last)
        every: list[Remembered] = []
        masks = self.form.network.masks
        passing = [layer for layer in range(asked.mask.bit_length()) if asked.mask >> layer & 1]
        passing = [layer for layer in passing if masks[layer][1] & ~asked.mask]
        for tree in self._made(group, first, tiles, energy, cycles, outer):
            every.append((tree, tuple((layer, self._layouts[layer]) for layer in passing)))
            if len(every) > MOST_TREES:
                self._trees_known[key] = HUGE, HUGE, None
                return None
        every.sort(key=lambda read_layer: read_layer[0].energy)
        if self._trees_kept + len(every) > MOST_TREES_KEPT:
            self._trees_known.clear()
            self._trees_kept = 0
        self._trees_known[key] = energy, cycles, every
        self._trees_kept += len(every)
        return every

    def _made(
        self,
        group: Subtrees,
        first: int,
        tiles: int,
        energy: float,
        cycles: float,
        outer: tuple[Way, int] | None,
    ) -> Iterator[OpenTree]:
        """The trees of a class of cuts, made from those of their children."""
        asked = group.asked
        for way in group.ways:
            if outer is not None and self._needless(way, *outer):
                continue
            for children, places, passed in self._placements(way, first, tiles):
                for row in self._filled(way, children, places, passed, energy, cycles / way.slots):
                    times, moved = (
                        [child.cycles for child in row],
                        way.groups * sum(child.moved for child in row),
                    )
                    taken = way.slots * (sum(times) if way.kind == "T" else max(times))
                    taken = max(taken, moved / self.classes.rate)
                    held = self._held(way, row, top=outer is None)
                    if taken <= cycles and held is not None:
                        node = Cut(way.kind, asked.samples, way.groups, tuple(child.node for child in row))
                        yield OpenTree(node, sum(child.energy for child in row), taken, moved, *held)

    def _held(
        self, way: Way, row: tuple[OpenTree, ...], *, top: bool
    ) -> tuple[Int64s, Int64s, Int64s] | None:
        """What a cut holds at least, inputs and weights; ``None`` where these do not fit the buffers.

        Of the children of a T cut those that pass results on directly follow each other in every order.
        """
        shift = top and way.kind == "T" and way.groups == 1 and self.form.rules.weight_shift
        buffer, inputs, weights = row[0].buffer, row[0].inputs, row[0].weights
        if way.kind == "S":
            for child in row[1:]:
                buffer, inputs, weights = (
                    buffer + child.buffer,
                    inputs + child.inputs,
                    weights + child.weights,
                )
            if way.groups > 1:
                buffer = buffer + inputs
        else:
            pinned = shift * weights
            buffer = buffer + pinned
            for at, child in enumerate(row[1:], 1):
                before, pinned = pinned, shift * child.weights
                both = child.buffer + pinned
                if self._passes_on(way.children[at - 1].asked.mask, way.children[at].asked):
                    both = np.maximum(both, child.inputs + row[at - 1].buffer + before + pinned)
                buffer = np.maximum(buffer, both)
                inputs, weights = inputs + child.inputs, weights + child.weights
        inputs, weights = inputs * way.groups, weights * (not shift)
        capacity = self.form.capacity
        if int((buffer + weights).max()) > capacity or (not top and int(inputs.max()) > capacity):
            return None
        return buffer, inputs, weights

    def _passes_on(self, part: int, reader: Asked) -> bool:
        """Whether a child of a cut reads results of another directly."""
        key = part, reader.mask, reader.fetched
        passes = self._direct.get(key)
        if passes is None:
            direct = self.rows.crossing(reader.mask) & ~reader.fetched
            passes = any(
                direct >> read_layer.number & 1 and part >> read_layer.producer & 1
                for read_layer in self.rows.reads
            )
            self._direct[key] = passes
        return passes

    def _leaf(self, asked: Asked, first: int, tiles: int) -> OpenTree | None:
        """A leaf with the layouts of its producers; none where it does not fit."""
        form, layer = self.form, asked.mask.bit_length() - 1
        direct = tuple(
            -1 if asked.fetched >> read.number & 1 else self._layouts[read.producer]
            for read in form.dataflow.numbers(layer)
        )
        key = asked.mask, asked.samples, asked.stored, first, tiles, direct
        if key not in self._leaves:
            self._leaves[key] = self._mapped(asked, first, tiles, direct)
        leaf, self._layouts[layer] = self._leaves[key]
        return leaf

    def _mapped(
        self, asked: Asked, first: int, tiles: int, direct: tuple[int, ...]
    ) -> tuple[OpenTree | None, int]:
        """A leaf whose producers have these layouts, and the number of its own."""
        form, layer = self.form, asked.mask.bit_length() - 1
        runs = max(1, self.loads // asked.samples)
        cost = form.engine.leaf(layer, asked.samples, first, tiles, bool(asked.stored), runs, direct)
        if cost is None:
            return None, -1
        cycles = cost.cycles
        if not form.rules.segment_bounds_only:
            cycles = form.bounded(cycles, cost.counts)
        energy = cost.energy * form.batch / asked.samples
        held = cost.buffer, cost.inputs, cost.weights
        leaf = OpenTree(Leaf(layer, asked.samples), energy, float(cycles), float(cost.counts[DRAM]), *held)
        return leaf, cost.layout

    def _filled(
        self,
        way: Way,
        children: tuple[Subtrees, ...],
        places: tuple[tuple[int, int], ...],
        passed: tuple[float, ...],
        energy: float,
        cycles: float,
    ) -> Iterator[tuple[OpenTree, ...]]:
        """Trees for all children of a cut, or the last of them, that together stay within the budget.

        Parameters
        ----------
        passed : pJ of hops of what siblings pass on to each child
        """
        if not children:
            yield ()
            return
        whole, slowest = energy, 0.0
        for child, (first, tiles), hops in zip(children[1:], places[1:], passed[1:], strict=True):
            at = self._place(first, tiles)
            energy -= float(child.taken.energy[at]) + hops
            slowest += float(child.taken.cycles[at])
        if children[0].taken.energy[self._place(*places[0])] + passed[0] > energy:
            return
        in_turn, number = way.kind == "T", len(way.children) - len(children)
        most = cycles - slowest if in_turn else cycles
        later = children[1:], places[1:], passed[1:]
        for tree in self._trees(children[0], *places[0], energy, most, (way, number)):
            left = cycles - tree.cycles if in_turn else cycles
            for rest in self._filled(way, *later, whole - tree.energy, left):
                yield (tree, *rest)

    def _placements(self, way: Way, first: int, tiles: int) -> list[Placement]:
        key = way, first, tiles
        placements = self._known.get(key)
        if placements is None:
            placements = self._known[key] = [*self._placed(way, first, tiles)]
        return placements

    def _placed(self, way: Way, first: int, tiles: int) -> Iterator[Placement]:
        """The children of a cut in all orders that have to be distinguished."""
        if way.kind == "T":
            yield way.children, ((first, tiles),) * len(way.children), (0.0,) * len(way.children)
            return
        distances = self.classes.distances.tables
        for order in self._orders(way.children):
            children = tuple(way.children[at] for at in order)
            given = self.classes.divisions.own(tuple(child.time for child in children), tiles)
            if given is None:
                continue
            places = tuple((first + sum(given[:at]), given[at]) for at in range(len(given)))
            spots = dict(zip(order, (self._place(*place) for place in places), strict=True))
            passed = dict.fromkeys(order, 0.0)
            for producer, reader in zip(*np.nonzero(way.passed), strict=True):
                links = distances[way.tables[producer], spots[producer], spots[reader]]
                passed[reader] += float(way.passed[producer, reader] * links)
            yield children, places, tuple(passed.values())

    def _orders(self, children: tuple[Subtrees, ...]) -> Iterator[tuple[int, ...]]:
        """Orders of children, by number, in which producers come first."""
        if not self.rows.any_order:
            yield tuple(range(len(children)))
            return
        yield from self.rows.orders(tuple(child.asked.mask for child in children))

    def _beside(self, outer: Way, at: int) -> tuple[int, int]:
        """Layers of the child of a T cut ahead of one, and its own that the child behind it reads."""
        around = [child.asked.mask for child in outer.children]
        behind = self.rows.needed(around[at + 1]) if at + 1 < len(around) else 0
        return around[at - 1] if at else 0, behind & around[at]

    def _needless(self, inner: Way, outer: Way, at: int) -> bool:
        """Whether a child of a T cut, made in that way, may give its place to its own children."""
        if inner.kind == "S" or outer.kind == "S" or inner.groups > 1 or not self.rows.any_order:
            return False
        parts = tuple(child.asked.mask for child in inner.children)
        ahead, behind = self._beside(outer, at)
        key = parts, ahead, behind
        needless = self._dissolved.get(key)
        if needless is None:
            needless = self._dissolved[key] = all(
                not any(self.rows.needed(part) & ahead for part in row[1:])
                and not any(part & behind for part in row[:-1])
                for row in self.rows.alike(parts)
            )
        return needless
