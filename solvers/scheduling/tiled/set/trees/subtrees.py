"""Classes of subtrees: bounds on all subtrees over some layers, place by place.

The tree around a subtree sees its layers, its samples, which of its results are stored, which of its reads
come through DRAM, and its normalized processing time, by which tiles are divided.  Subtrees equal in all of
that form one class.  Its energy, cycles and DRAM bytes are bounded for every place (`places.py`) by the
closed form itself, with bounds for its leaves (`leaf_figures.py`):

- Children of a T cut have its place; energies, cycles and bytes add up.  A leaf on all tiles whose reads are
  known is mapped exactly, and its layout is passed to its readers.
- Children of an S cut have the places that follow from their processing times, in their best order.  What
  they pass on moves at least as far as these places are apart (`distances.py`), and no cut is faster than its
  traffic through DRAM.

A class is requested with a limit: the most energy and cycles at every place.  So whatever cannot be part of a
better tree than the best one known is pruned before anything that would contain it is made.  Ordered
partitions of layers come first (`rows.py`): they determine what is stored and fetched, which prunes most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.leaf.leaf_figures import Given, LeafFigures, Taken
from tilewright.solvers.scheduling.tiled.set.trees.distances import ANY, Distances
from tilewright.solvers.scheduling.tiled.set.trees.divisions import Divisions
from tilewright.solvers.scheduling.tiled.set.trees.places import places_of
from tilewright.solvers.scheduling.tiled.set.trees.places_kernel import fewer, side_by_side, wider
from tilewright.solvers.scheduling.tiled.set.trees.rows import Kind, Row, Rows
from tilewright.solvers.scheduling.tiled.set.trees.subtree_terms import Asked, Limit, Subtrees, Way

PARTS = 2**14
"""Parts of a cycle in which processing times are counted, if they can be."""

SLACK = 1 + 1e-9
"""For sums in another order."""


def sums_are_exact(times: tuple[float, ...], batch: int) -> bool:
    """Whether processing times of all trees are without rounding, so that no order of sums matters.

    They are sums of the layers' times, which S cuts multiply by integers and divide by powers of two.
    """
    whole = all((time * PARTS).is_integer() for time in times)
    return whole and batch & (batch - 1) == 0 and sum(times) * PARTS * batch * 2 ** len(times) < 2**53


class SubtreeClasses:
    """Finds and caches the classes of subtrees of one network.

    Parameters
    ----------
    loads : samples for which weights are loaded once
    stop : whether the time is up; the classes are then incomplete
    """

    def __init__(
        self,
        form: ClosedForm,
        lower_bounds: LayerBounds,
        loads: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.form, self.lower_bounds, self.stop = form, lower_bounds, stop
        self.places = places_of(form.engine.grid.tiles)
        self.distances = Distances(form, self.places)
        self.leaves = LeafFigures(form, lower_bounds, self.places, loads)
        self.rows = Rows(form.dataflow, sums_are_exact(form.dataflow.times, form.batch))
        bound_inside = not form.rules.segment_bounds_only
        self.rate = float(form.machine.dram_rate) if bound_inside else math.inf
        self._kept: dict[tuple[int, Asked], tuple[Limit, list[Subtrees]]] = {}
        self.divisions = Divisions(self.places.total, form.rules.least_utilization, self.rows.any_order)
        self._leasts: dict[Asked, Taken] = {}
        self._within: dict[tuple[int, int, bool, int, tuple[int, ...]], Taken] = {}

    def of(self, asked: Asked, limit: Limit) -> list[Subtrees]:
        """All open classes within a limit."""
        known = self._kept.get((limit.number, asked))
        if known is not None:
            if known[0].covers(limit):
                return known[1]
            limit = limit.widened(known[0])
        classes = self._leaf(asked) if asked.mask & (asked.mask - 1) == 0 else self._cuts(asked, limit)
        if not self.stop():
            self._kept[limit.number, asked] = limit, classes
        return classes

    def least_of_segment(self, asked: Asked) -> tuple[float, float]:
        """pJ and cycles of one run that a segment takes at least, before any subtree is made."""
        energy = moved = work = 0.0
        for layer in range(asked.mask.bit_length()):
            if asked.mask >> layer & 1:
                least = self.leaves.least(layer, bool(asked.stored >> layer & 1), asked.fetched)
                energy, moved = energy + least[0], moved + least[1]
                work += self.lower_bounds.work[layer]
        cycles = max(work / self.places.total, moved / self.form.machine.dram_rate)
        return energy, cycles * asked.samples / self.form.batch

    def others(self, mask: int) -> tuple[float, float]:
        """pJ and cycles of the segments of all other layers, which pass everything on through DRAM."""
        network = self.form.network
        energy = moved = work = 0.0
        for layer, layer_shape in enumerate(network.layers):
            if mask >> layer & 1:
                continue
            numbers = self.form.dataflow.numbers(layer)
            fetched = sum(1 << read.number for read in numbers if mask >> read.producer & 1)
            least = self.leaves.least(
                layer, bool(network.masks[layer][1] & mask) or layer_shape.is_output, fetched
            )
            energy, moved = energy + least[0], moved + least[1]
            work += self.lower_bounds.work[layer]
        return energy, max(work / self.places.total, moved / self.form.machine.dram_rate)

    def _leaf(self, asked: Asked) -> list[Subtrees]:
        layer = asked.mask.bit_length() - 1
        taken = self.leaves.of(layer, asked.samples, bool(asked.stored), asked.fetched, True, asked.given)
        time = self.form.dataflow.times[layer] if asked.timed else 0.0
        return [Subtrees(asked, time, taken, [])]

    def _cuts(self, asked: Asked, limit: Limit) -> list[Subtrees]:
        by_time: dict[float, Subtrees] = {}
        numbers = set(self.places.tiles[limit.energy > 0].tolist())
        for groups in range(1, asked.samples + 1):
            if asked.samples % groups:
                continue
            is_pruned = self._pruned_row(asked, limit, groups)
            kinds: tuple[Kind, ...] = ("S", "T")
            for kind in kinds:
                for row in self.rows.over(asked.mask, kind, is_pruned):
                    for way in self._ways(asked, limit, kind, groups, row):
                        if self.stop():
                            return []
                        self._keep(by_time, asked, limit, numbers, way)
        return list(by_time.values())

    def _pruned_row(self, asked: Asked, limit: Limit, groups: int) -> Callable[[int, int, int], bool]:
        """Whether an ordered partition is pruned, by the least that its layers spend, move and work.

        The slowest child of an S cut takes no less than the work of all over the tiles of the cut.  Once time
        is up every partition is pruned.
        """
        spend, last = float(limit.energy.max()) * SLACK, float(limit.cycles.max()) * SLACK
        inside = [layer for layer in range(asked.mask.bit_length()) if asked.mask >> layer & 1]
        layers = [(layer, self.rows.crossing(1 << layer)) for layer in inside]
        known: dict[tuple[int, int, int], tuple[float, float]] = {}
        part = asked.samples / self.form.batch
        area = float(np.where(limit.energy > 0, limit.cycles * self.places.tiles, -math.inf).max()) * SLACK
        work = part * sum(self.lower_bounds.work[layer] for layer in inside)

        def is_pruned(stored: int, fetched: int, stages: int) -> bool:
            if work * (groups + stages) / groups > area or self.stop():
                return True
            stored, fetched = stored | asked.stored, fetched | asked.fetched
            energy = moved = 0.0
            for layer, own in layers:
                key = layer, stored >> layer & 1, fetched & own
                least = known.get(key)
                if least is None:
                    least = known[key] = self.leaves.least(layer, bool(key[1]), fetched, asked.given)
                energy, moved = energy + least[0], moved + least[1]
            return energy > spend or moved * part / self.rate > last

        return is_pruned

    def _children(self, asked: Asked, kind: Kind, groups: int, row: Row) -> list[Asked]:
        """The children of a cut over an ordered partition.

        A leaf on all tiles passes its results on in a layout that follows from where it reads its own.
        """
        timed, whole = kind == "S" or asked.timed, kind == "T" and asked.whole
        stored, fetched = asked.stored | row.stored, asked.fetched | row.fetched
        given, children = dict(asked.given), list[Asked]()
        for part in row.parts:
            crossing = self.rows.crossing(part)
            near = crossing & ~fetched
            known = tuple((read, layout) for read, layout in given.items() if near >> read & 1)
            samples = asked.samples // groups
            child = Asked(part, samples, stored & part, fetched & crossing, timed, whole, known)
            children.append(child)
            layout = self._layout(child)
            if layout is not None:
                own = (read.number for read in self.rows.reads if part >> read.producer & 1)
                given.update(dict.fromkeys(own, layout))
        return children

    def _layout(self, asked: Asked) -> int | None:
        """The number of the layout of a leaf on all tiles that knows where it reads everything."""
        if not (asked.whole and self.places.apart) or asked.mask & (asked.mask - 1):
            return None
        layer = asked.mask.bit_length() - 1
        known = asked.fetched | sum(1 << read for read, _ in asked.given)
        if self.rows.crossing(asked.mask) & ~known:
            return None
        runs, direct = max(1, self.leaves.loads // asked.samples), self.leaves.direct(layer, asked.given)
        cost = self.form.engine.leaf(
            layer, asked.samples, 0, self.places.total, bool(asked.stored), runs, direct
        )
        return None if cost is None else cost.layout

    def _ways(self, asked: Asked, limit: Limit, kind: Kind, groups: int, row: Row) -> Iterator[Way]:
        """Cuts over an ordered partition: every choice of open classes for its children."""
        children = self._children(asked, kind, groups, row)
        passed = self._passed(row) if kind == "S" else np.zeros((0, 0))
        between = float(passed.sum())
        slots = groups + row.slots if kind == "S" else groups
        least = [self._least(child) for child in children]
        classes: list[list[Subtrees]] = [[] for _ in children]
        for at in sorted(range(len(children)), key=lambda place: children[place].mask.bit_count()):
            others = least[:at] + least[at + 1 :]
            mine = self._limit_of_child(limit, kind, slots, between, others)
            if not self._hope(least[at], mine):
                return
            classes[at] = self.of(children[at], mine)
            if not classes[at]:
                return
            least[at] = _least_of(classes[at])
        for chosen in itertools.product(*classes):
            tables = np.array([self._distances(child) for child in chosen], dtype=np.int64)
            yield Way(kind, groups, slots, passed, tables, chosen)

    def _limit_of_child(
        self, limit: Limit, kind: Kind, slots: int, passed: float, others: list[Taken]
    ) -> Limit:
        """What the limit of a cut leaves for one child, given the others."""
        energy, cycles = limit.energy - passed, limit.cycles / slots
        begin, apart = self.places.begin, self.places.apart
        for least in others:
            if kind == "T":
                energy, cycles = energy - least.energy, cycles - least.cycles
            else:
                energy = energy - fewer(least.energy, begin, apart)
        if kind == "T":
            return Limit(energy, cycles, limit.number)
        return Limit(wider(energy, begin, apart), wider(cycles, begin, apart), limit.number)

    @staticmethod
    def _hope(least: Taken, limit: Limit) -> bool:
        return bool(((least.energy <= limit.energy * SLACK) & (least.cycles <= limit.cycles * SLACK)).any())

    def _keep(
        self, by_time: dict[float, Subtrees], asked: Asked, limit: Limit, numbers: set[int], way: Way
    ) -> None:
        """Add a way to the class that it belongs to, unless the limit prunes it.

        Parameters
        ----------
        numbers : of tiles that the limit admits in some place
        """
        taken = self._taken(way, limit, numbers)
        hope = (taken.energy <= limit.energy * SLACK) & (taken.cycles <= limit.cycles * SLACK)
        if not hope.any():
            return
        energy, cycles, moved = (np.where(hope, figure, math.inf) for figure in taken)
        time = 0.0
        if asked.timed:
            time = sum(child.time for child in way.children)
            if way.kind == "S":
                time = time * way.slots / way.groups
        known = by_time.get(time)
        if known is None:
            by_time[time] = Subtrees(asked, time, Taken(energy, cycles, moved), [way])
            return
        known.ways.append(way)
        for figure, other in zip(known.taken, (energy, cycles, moved), strict=True):
            np.minimum(figure, other, out=figure)

    def _taken(self, way: Way, limit: Limit, numbers: set[int]) -> Taken:
        parts = [child.taken for child in way.children]
        energies, times, bytes_moved = (np.array(column) for column in zip(*parts, strict=True))
        if way.kind == "T":
            energy, cycles, moved = (column.sum(axis=0) for column in (energies, times, bytes_moved))
            return Taken(energy, way.groups * cycles, way.groups * moved)
        times_of = tuple(child.time for child in way.children)
        table = self.divisions.table(times_of, numbers)
        masks = [child.asked.mask for child in way.children]
        energy, cycles, moved = side_by_side(
            energy=energies,
            cycles=times,
            moved=bytes_moved,
            begin=self.places.begin,
            apart=self.places.apart,
            tables=table,
            before=self._before(masks),
            slots=float(way.slots),
            passed=way.passed,
            kinds=way.tables,
            distances=self.distances.tables,
            spend=limit.energy,
            last=limit.cycles,
        )
        moved = moved * way.groups
        return Taken(energy, np.maximum(cycles, _over(moved, self.rate)), moved)

    def _before(self, masks: list[int]) -> Int64s:
        """Per child of an S cut, those that stand before it in every order that is looked at."""
        before = np.zeros(len(masks), dtype=np.int64)
        for at, mask in enumerate(masks):
            needed = self.rows.needed(mask)
            for other, sibling in enumerate(masks[:at]):
                if sibling & needed or not self.rows.any_order:
                    before[at] |= 1 << other
        return before

    def _passed(self, row: Row) -> Floats:
        """pJ of a hop of all that the children of an S cut pass on, by producer and reader."""
        passed = np.zeros((len(row.parts), len(row.parts)))
        for reader, part in enumerate(row.parts):
            direct = self.rows.crossing(part) & ~row.fetched
            for read in self.rows.reads:
                if direct >> read.number & 1:
                    for producer, other in enumerate(row.parts):
                        if other >> read.producer & 1:
                            passed[producer, reader] += self.lower_bounds.read_bytes[read.number]
        return passed * self.form.batch * self.form.machine.hop_energy

    def _distances(self, child: Subtrees) -> int:
        """The table of distances of what a child of an S cut passes on: its own if it is a leaf of which all
        readers need everything.
        """
        if child.ways:
            return ANY
        layer = child.asked.mask.bit_length() - 1
        read = [
            self.lower_bounds.read_bytes[size.number] for size in self.rows.reads if size.producer == layer
        ]
        whole = all(size in (0, self.form.network.layers[layer].output_bytes) for size in read)
        return self.distances.table(layer, child.asked.samples) if whole else ANY

    def _least(self, asked: Asked) -> Taken:
        """The least that subtrees take by place, before any is made: each layer has some of the tiles."""
        least = self._leasts.get(asked)
        if least is None:
            least = self._leasts[asked] = self._least_by_layers(asked)
        return least

    def _least_by_layers(self, asked: Asked) -> Taken:
        energy = moved = slowest = np.zeros(len(self.places))
        work = 0.0
        lone = asked.mask & (asked.mask - 1) == 0
        for layer in range(asked.mask.bit_length()):
            if not asked.mask >> layer & 1:
                continue
            if lone:
                return self._leaf(asked)[0].taken
            stored = bool(asked.stored >> layer & 1)
            inside = self._inside(layer, asked.samples, stored, asked.fetched, asked.given)
            energy, moved = energy + inside.energy, moved + inside.moved
            slowest = np.maximum(slowest, inside.cycles)
            work += self.lower_bounds.work[layer] * asked.samples / self.form.batch
        slowest = np.maximum(slowest, work / self.places.tiles)
        return Taken(energy, np.maximum(slowest, _over(moved, self.rate)), moved)

    def _inside(self, layer: int, samples: int, stored: bool, fetched: int, given: Given) -> Taken:
        """The least of a leaf within a place, for ``samples`` of a run of what holds it, by any batch."""
        direct = self.leaves.direct(layer, given)
        key = layer, samples, stored, fetched & self.rows.crossing(1 << layer), direct
        within = self._within.get(key)
        if within is None:
            begin, apart = self.places.begin, self.places.apart
            every = []
            for batch in range(1, samples + 1):
                if samples % batch == 0:
                    taken, runs = (
                        self.leaves.of(layer, batch, stored, fetched, False, given),
                        samples // batch,
                    )
                    here = [taken.energy, taken.cycles * runs, taken.moved * runs]
                    every.append([np.minimum(figure, fewer(figure, begin, apart)) for figure in here])
            within = self._within[key] = Taken(
                *(np.minimum.reduce(figure) for figure in zip(*every, strict=True))
            )
        return within


def _over(moved: Floats, rate: float) -> Floats:
    """Cycles that bytes take; none where the rate is infinite, whatever is moved."""
    return moved / rate if rate < math.inf else np.zeros_like(moved)


def _least_of(classes: list[Subtrees]) -> Taken:
    """The least of several classes by place."""
    return Taken(
        *(np.minimum.reduce(figure) for figure in zip(*(figure.taken for figure in classes), strict=True))
    )
