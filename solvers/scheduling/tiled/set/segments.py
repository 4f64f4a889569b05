"""All segments of a kind, from every down-set on: what exact chains choose from.

``ls``: layers in turn on all tiles, a T cut of leaves.  ``lp``: layers side by side, an S cut of leaves.
All trees: those whose cuts have at least two children, as far as they may be part of one below a value.
Leaves alone are segments of each kind.

With one sample and the paper's rules an LS segment is a path: a leaf's cost depends on the layout of the leaf
before it and on whether anyone but the next one reads it.  A leaf that does not read the one before it gains
nothing from sharing a segment with it, since every node is bounded by its own traffic.  So a path continues
only with leaves that do.  Paths that end in the same leaf with the same past compete by energy and cycles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from tilewright.formulation.scheduling.tiled.set.leaf.leaf_cost import LeafCost
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.instance import HUGE
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, shortest
from tilewright.solvers.scheduling.tiled.set.trees.open_trees import OpenTrees

SPAN, SPANS = 1.04, 8
"""How many times as long as its beginning a span of cycles ends, and how many there are at most."""


@dataclass
class SegmentMaker:
    """Fills a set of segments.

    Parameters
    ----------
    samples : of one run of a segment
    loads : samples for which weights are loaded once
    stop : whether the time is up; the segments are then incomplete
    """

    form: ClosedForm
    samples: int
    loads: int
    stop: Callable[[], bool]

    def __post_init__(self) -> None:
        self._made: dict[Node, NodeCost | None] = {}
        self._around: tuple[Ends, Ends] | None = None

    def fill(self, segments: Segments, sets: list[int], space: str) -> bool:
        """Add every LS or LP segment; returns whether these are all."""
        rules = self.form.rules
        by_paths = (
            space == "ls" and self.samples == 1 and rules.weight_shift and not rules.segment_bounds_only
        )
        for start in sets[:-1]:
            for segment in self._paths(start) if by_paths else self._sequences(start, space):
                segments.add(segment)
            if self.stop():
                return False
        return True

    def fill_below(self, segments: Segments, sets: list[int], open_trees: OpenTrees, value: float) -> bool:
        """Add every segment that may be part of a tree below a value; returns whether these are all.

        Short segments come first: those that complete a long segment to a chain are then known, and so is the
        least that they take.

        Parameters
        ----------
        segments : added to
        sets : down-sets of layers as sets of bits, the empty one first and the whole network last
        open_trees : enumerates the trees over a set of layers that no bound excludes
        value : of the objective
        """
        count = len(self.form.network)
        self._around = None
        ends = {start: {start} for start in sets[:-1]}
        for length in range(1, count + 1):
            if 2 * length > count and self._around is None:
                self._around = ends_of(segments, sets)
            for start in sets[:-1]:
                ends[start] = self._longer(open_trees, ends[start])
                for end in sorted(ends[start]):
                    for segment in self._between(open_trees, start, end, value):
                        segments.add(segment)
                    if self.stop():
                        return False
        return not self.stop()

    def _longer(self, open_trees: OpenTrees, ends: set[int]) -> set[int]:
        """Down-sets larger by one layer; some of them once time is up."""
        longer_ends: set[int] = set()
        for end in open_trees.rows.next_ends((1 << len(self.form.network)) - 1, ends):
            longer_ends.add(end)
            if self.stop():
                break
        return longer_ends

    def _between(self, open_trees: OpenTrees, start: int, end: int, value: float) -> Iterator[Segment]:
        """Segments of the layers between two down-sets, as every tree that may be below a value."""
        form, runs = self.form, self.form.batch // self.samples
        energy, cycles = self._others(open_trees, start, end)
        least = open_trees.classes.least_of_segment(open_trees.segment(end ^ start, self.samples))
        most = form.most(value, energy + least[0], cycles + runs * least[1])
        fastest, last = least[1], (most[1] - cycles) / runs
        spans = [(fastest, last)] if HUGE in most else parts_of_time(fastest, last)
        for number, (fastest, last) in enumerate(spans):
            spend = form.most(value, energy + least[0], cycles + runs * fastest)[0] - energy
            for tree in open_trees.over(end ^ start, self.samples, spend, last, number):
                if form.value(energy + tree.energy, cycles + runs * tree.cycles) * (1 - 1e-9) >= value:
                    continue
                cost = self._cost(open_trees, tree.node)
                if cost is not None:
                    yield Segment(start, end, cost.energy, cost.cycles, cost.node)
                    if end ^ start == (1 << len(form.network)) - 1:  # it covers the whole network
                        value = min(value, form.value(runs * cost.energy, runs * cost.cycles))

    def _others(self, open_trees: OpenTrees, start: int, end: int) -> tuple[float, float]:
        """Least pJ and cycles of all other segments of a chain with this one."""
        if self._around is None:
            return open_trees.classes.others(end ^ start)
        runs, (ahead, behind) = self.form.batch // self.samples, self._around
        before, after = ahead.get(start, (inf, inf)), behind.get(end, (inf, inf))
        return runs * (before[0] + after[0]), runs * (before[1] + after[1])

    def _cost(self, open_trees: OpenTrees, tree: Node) -> NodeCost | None:
        """The cost of a tree, or of one that differs in the order of children of T cuts and fits."""
        if tree not in self._made:
            self._made[tree] = None
            for tree_apart in open_trees.members.buffers_apart(tree):
                cost = self.form.segment(tree_apart, self.loads)
                if not isinstance(cost, Unfit):
                    self._made[tree] = cost
                    break
        return self._made[tree]

    def _segment(self, start: int, tree: Node) -> Segment | None:
        cost = self.form.segment(tree, self.loads)
        if isinstance(cost, Unfit):
            return None
        return Segment(start, start | tree.mask, cost.energy, cost.cycles, tree)

    def _sequences(self, start: int, space: str) -> Iterator[Segment]:
        """Every sequence of layers from a down-set on, as every tree of the space."""
        longest = self.form.engine.grid.tiles if space == "lp" else len(self.form.network)

        def grow(order: tuple[int, ...], done: int) -> Iterator[Segment]:
            if self.stop():
                return
            for tree in self._trees(order, space) if order else ():
                segment = self._segment(start, tree)
                if segment is not None:
                    yield segment
            if len(order) < longest:
                for layer in self.form.network.ready(done):
                    yield from grow((*order, layer), done | 1 << layer)

        return grow((), start)

    def _trees(self, order: tuple[int, ...], space: str) -> Iterator[Node]:
        if len(order) == 1:
            yield Leaf(order[0], self.samples)
        else:
            for groups in range(1, self.samples + 1):
                if self.samples % groups == 0:
                    inner = tuple(Leaf(layer, self.samples // groups) for layer in order)
                    yield Cut("T" if space == "ls" else "S", self.samples, groups, inner)

    def _paths(self, start: int) -> Iterator[Segment]:
        """LS segments of one sample as paths; see the module."""
        form, network = self.form, self.form.network
        before = [mask for mask, _ in network.masks]
        level: dict[_Past, list[_Path]] = {}
        for layer in network.ready(start):
            direct = (-1,) * len(network.layers[layer].producers)
            level[_Past(start | 1 << layer, layer, direct, None)] = [_Path(0.0, 0, (layer,))]
        while level:
            following: dict[_Past, list[_Path]] = {}
            for past, rivals in level.items():
                if self.stop():
                    return
                last = self._leaf(past, stored=True)
                if last is not None and past.fits(last, form.capacity):
                    for path in rivals:
                        yield self._ended(start, past, path, last)
                for layer in network.ready(past.done):
                    if not before[layer] >> past.layer & 1:
                        continue
                    others = network.masks[past.layer][1] & ~(1 << layer)
                    stored = bool(others) or network.layers[past.layer].is_output
                    here = last if stored else self._leaf(past, stored=False)
                    if here is None or not past.fits(here, form.capacity):
                        continue
                    producers = network.layers[layer].producers
                    direct = tuple(
                        here.layout if producer.layer == past.layer else -1 for producer in producers
                    )
                    key = _Past(past.done | 1 << layer, layer, direct, here)
                    cycles = form.bounded(here.cycles, here.counts)
                    for path in rivals:
                        grown = _Path(path.energy + here.energy, path.cycles + cycles, (*path.order, layer))
                        _keep(following.setdefault(key, []), grown)
            level = following

    def _leaf(self, past: _Past, *, stored: bool) -> LeafCost | None:
        tiles = self.form.engine.grid.tiles
        return self.form.engine.leaf(past.layer, 1, 0, tiles, stored, self.loads, past.direct)

    def _ended(self, start: int, past: _Past, path: _Path, last: LeafCost) -> Segment:
        cycles = path.cycles + self.form.bounded(last.cycles, last.counts)
        order = path.order
        inner = tuple(Leaf(layer, 1) for layer in order)
        tree: Node = inner[0] if len(inner) == 1 else Cut("T", 1, 1, inner)
        return Segment(start, past.done, path.energy + last.energy, cycles, tree)


def parts_of_time(least: float, last: float) -> list[tuple[float, float]]:
    """Spans of cycles that follow each other from the least that a segment takes to the most that it may.

    The energy budget of a segment falls with its cycles.  Within a span the budget is tighter than over all
    cycles, so that a slow segment cannot use the budget of a fast one.
    """
    ends, longest = [least], last / SPAN
    while least > 0 and ends[-1] < longest and len(ends) < SPANS:
        ends.append(ends[-1] * SPAN)
    return [*itertools.pairwise([*ends, last])]


Ends = dict[int, tuple[float, float]]
"""By down-set, the least energy and the least cycles of a chain from nothing to it, or from it to the end."""


def ends_of(segments: Segments, sets: list[int]) -> tuple[Ends, Ends]:
    """What chains of the segments known take at least up to every down-set, and from it on."""
    behind = [shortest(segments, sets, weigh) for weigh in (_energy, _cycles)]
    ahead: Ends = {0: (0.0, 0.0)}
    for start in sets:
        energy, cycles = ahead.get(start, (inf, inf))
        for segment in segments.from_start(start):
            known = ahead.get(segment.end, (inf, inf))
            ahead[segment.end] = (
                min(known[0], energy + segment.energy),
                min(known[1], cycles + segment.cycles),
            )
    return ahead, {segment: (behind[0][segment], behind[1][segment]) for segment in sets}


def _energy(segment: Segment) -> float:
    return segment.energy


def _cycles(segment: Segment) -> float:
    return float(segment.cycles)


@dataclass(frozen=True, slots=True)
class _Path:
    """Energy and cycles of all leaves of a path but the last, and the layers."""

    energy: float
    cycles: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Past:
    """What the costs to come know of a path: layers done, the last one, its direct layouts, the leaf before
    it.
    """

    done: int
    layer: int
    direct: tuple[int, ...]
    previous: LeafCost | None

    def fits(self, last: LeafCost, capacity: int) -> bool:
        """Whether the last leaf fits the buffers together with the one before it."""
        if self.previous is None:
            return True
        both = last.inputs + last.weights + self.previous.buffer + self.previous.weights
        return int(both.max()) <= capacity


def _keep(rivals: list[_Path], new: _Path) -> None:
    if any(rival.energy <= new.energy and rival.cycles <= new.cycles for rival in rivals):
        return
    rivals[:] = [rival for rival in rivals if rival.energy < new.energy or rival.cycles < new.cycles]
    rivals.append(new)
