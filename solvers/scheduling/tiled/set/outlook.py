"""What no tree with a given subtree undercuts.

A subtree gets some tiles, nobody knows how many before the tree around it is there.  So its energy and the
cycles of one run are bounded for every number of them, by the closed form itself with the floors of leaves
(`floors.py`) in place of their costs: each leaf with the bytes that it moves through DRAM, those of the
subtree's own cuts included, S cuts divided as they will be, and no S cut faster than the DRAM traffic of all
its leaves.  A tree around it spends the floors of all other layers too, and

- the subtree's runs follow each other: it takes its cycles times its runs;
- it takes one run of the subtree and of whatever lies on a path through it, and of all other runs their part
  of the tiles, by the argument of `bounds.py`;
- while it runs nobody else has its tiles: the tree takes its cycles times its tiles and the work of all other
  layers, over all tiles;
- it takes all traffic over DRAM's rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.allocation import utilization
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node, leaves
from tilewright.solvers.scheduling.tiled.set.any_order import allocations_in_any_order
from tilewright.solvers.scheduling.tiled.set.floors import Floors
from tilewright.solvers.scheduling.tiled.set.leaf_figures import LeafFigures
from tilewright.solvers.scheduling.tiled.set.outlook_kernel import least_values, side_by_side
from tilewright.solvers.scheduling.tiled.set.places import places_of

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

PARTS = 2**14
"""Parts of a cycle in which processing times are counted, if they can be."""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Bounds on a subtree by its place (`places.py`).

    Parameters
    ----------
    energy, cycles : pJ of the whole batch, and cycles of one run
    area : tiles times cycles that it has for itself in one run
    moved : bytes of DRAM in one run
    """

    energy: Floats
    cycles: Floats
    area: Floats
    moved: Floats


def sums_are_exact(times: tuple[float, ...], batch: int) -> bool:
    """Whether processing times of all trees are without rounding, so that no order of sums matters.

    They are sums of the layers' times, which S cuts multiply by integers and divide by powers of two.
    """
    whole = all((one * PARTS).is_integer() for one in times)
    return whole and batch & (batch - 1) == 0 and sum(times) * PARTS * batch * 2 ** len(times) < 2**53


class Outlook:
    """Judges subtrees of one network against the value of a tree that is known.

    Parameters
    ----------
    known : value of that tree
    loads : samples for which weights are loaded once
    """

    def __init__(self, form: ClosedForm, floors: Floors, known: float, loads: int) -> None:
        self.form, self.floors, self.known = form, floors, known
        self.places = places_of(form.engine.grid.tiles)
        self.leaves = LeafFigures(form, floors, self.places, loads)
        self._figures: dict[tuple[Node, int, int, bool], Figures] = {}
        self._around: dict[int, tuple[float, float, float, float]] = {}
        self._outputs = sum(1 << i for i, one in enumerate(form.network.layers) if one.is_output)
        self._rate = float(form.machine.dram_rate)
        self._lost: dict[Node, Floats] = {}
        self._known_tables: dict[tuple[float, ...], Longs] = {}
        self.exact = sums_are_exact(form.dataflow.times, form.batch)

    def hopeless(self, mask: int, batch: int, figures: Figures) -> bool:
        """Whether no tree with a subtree of these layers, batch and figures is better than the known one."""
        return bool((self._values(mask, batch, figures) >= self.known).all())

    def leaves_hope(self, node: Node) -> bool:
        """Whether a subtree leaves hope in any place; keeps in which."""
        figures = self.figures(node)
        lost = self._values(node.mask, node.batch, figures) >= self.known
        self._lost[node] = np.where(lost, math.inf, 0.0)
        return not lost.all()

    def _values(self, mask: int, batch: int, figures: Figures) -> Floats:
        """By place of a subtree, what no tree with it undercuts; where nothing is known, nothing that fits."""
        form = self.form
        return least_values(
            figures.energy,
            figures.cycles,
            figures.area,
            figures.moved,
            self._rest(mask),
            float(form.batch // batch),
            self.places.total,
            self._rate,
            form.energy_power,
            form.delay_power,
        )

    def others(self, mask: int) -> tuple[float, float]:
        """pJ and cycles of the segments of all other layers, which pass everything on through DRAM."""
        network = self.form.network
        energy = moved = work = 0.0
        for layer, one in enumerate(network.layers):
            if mask >> layer & 1:
                continue
            numbers = self.form.dataflow.numbers(layer)
            fetched = sum(1 << read.number for read in numbers if mask >> read.producer & 1)
            least = self.leaves.least(layer, bool(network.masks[layer][1] & mask) or one.is_output, fetched)
            energy, moved = energy + least[0], moved + least[1]
            work += self.floors.work[layer]
        return energy, max(work / self.places.total, moved / self._rate)

    def _rest(self, mask: int) -> tuple[float, float, float, float]:
        """pJ of all other layers, the longest path of others through a subtree, what others move, and their
        work.
        """
        found = self._around.get(mask)
        if found is None:
            network, floors = self.form.network, self.floors
            count = len(network)
            outside = [layer for layer in range(count) if not mask >> layer & 1]
            least = [self.leaves.least(layer, network.layers[layer].is_output, 0) for layer in outside]
            times = [0.0 if mask >> layer & 1 else floors.hull(layer)[0][0] for layer in range(count)]
            up, down = [0.0] * count, [0.0] * count
            for layer in range(count):
                up[layer] = times[layer] + max((up[one] for one in network.before[layer]), default=0.0)
            for layer in reversed(range(count)):
                down[layer] = times[layer] + max((down[one] for one in network.after[layer]), default=0.0)
            path = max(up[layer] + down[layer] for layer in range(count) if mask >> layer & 1)
            work = sum(floors.work[layer] for layer in outside)
            found = sum(one[0] for one in least), path, sum(one[1] for one in least), work
            self._around[mask] = found
        return found

    def figures(
        self, node: Node, stored: int = 0, fetched: int = 0, settled: bool = False
    ) -> Figures:
        """Bounds on a subtree by its place.

        Parameters
        ----------
        stored : layers whose results go to DRAM for readers outside of it, as a set of bits
        fetched : reads of results from outside of it that are not direct, as a set of bits
        settled : whether these are all
        """
        reads = self.form.dataflow.reads(node)
        stored = (stored | self._outputs | reads.stored) & node.mask
        key = node, stored, fetched, settled
        found = self._figures.get(key)
        if found is None:
            if isinstance(node, Leaf):
                found = self._leaf(node, stored, fetched, settled)
            else:
                found = self._cut(node, stored, fetched, settled)
            lost = self._lost.get(node)
            if lost is not None:
                found = replace(found, energy=found.energy + lost)
            self._figures[key] = found
        return found

    def alone(self, energy: Floats, cycles: Floats, moved: Floats) -> Figures:
        """Figures of a whole subtree, which has its tiles for itself while it runs."""
        return Figures(energy, cycles, cycles * self.places.tiles, moved)

    def _leaf(self, node: Leaf, stored: int, fetched: int, settled: bool) -> Figures:
        return self.alone(*self.leaves.of(node.layer, node.batch, bool(stored), fetched, settled))

    def parts(self, node: Cut, stored: int, fetched: int, settled: bool) -> list[Figures]:
        """Bounds on the children of a cut."""
        direct = self.form.dataflow.reads(node).direct
        found = []
        for child in node.children:
            missed = 0
            for read in self.form.dataflow.reads(child).crossing:
                bit = 1 << read.number
                if fetched & bit or (node.mask >> read.producer & 1 and not direct & bit):
                    missed |= bit
            found.append(self.figures(child, stored, missed, settled))
        return found

    def _tables(self, node: Cut) -> Longs:
        """Tiles for the children of an S cut by the number of its own, and all that orders of the children
        come to; -1 where any number is possible, 0 where it gets none.
        """
        if not self.exact:
            return self.form.allocations(node)[:, None, :]
        times = tuple(self.form.dataflow.processing_time(child) for child in node.children)
        found = self._known_tables.get(times)
        if found is None:
            least = self.form.rules.least_utilization
            rows: list[list[tuple[int, ...]]] = []
            for tiles in range(self.places.total + 1):
                given = allocations_in_any_order(times, tiles)
                if given is None:
                    rows.append([(-1,) * len(times)])
                else:
                    rows.append([one for one in given if min(one) > 0 and utilization(times, one) >= least])
            found = np.zeros((self.places.total + 1, max(1, *map(len, rows)), len(times)), dtype=np.int64)
            for tiles, row in enumerate(rows):
                if row:
                    found[tiles, : len(row)] = row
            self._known_tables[times] = found
        return found

    def _cut(self, node: Cut, stored: int, fetched: int, settled: bool) -> Figures:
        parts = self.parts(node, stored, fetched, settled)
        if node.kind == "T":
            energy, cycles, moved = (
                np.add.reduce(each)
                for each in zip(*((one.energy, one.cycles, one.moved) for one in parts), strict=True)
            )
            return self.alone(energy, node.groups * cycles, node.groups * moved)
        energy, cycles, moved = side_by_side(
            np.array([one.energy for one in parts]),
            np.array([one.cycles for one in parts]),
            np.array([one.moved for one in parts]),
            self.places.begin,
            self.places.apart,
            self._tables(node),
            self._before(node),
            float(node.groups + self.form.dataflow.stages(node).last),
        )
        moved = moved * node.groups
        if not self.form.rules.segment_bounds_only:
            cycles = np.maximum(cycles, moved / self._rate)
        return self.alone(energy + self._passed(node), cycles, moved)

    def _before(self, node: Cut) -> Longs:
        """Per child of an S cut, those that stand before it in every order that is looked at."""
        found = np.zeros(len(node.children), dtype=np.int64)
        masks = self.form.network.masks
        for at, child in enumerate(node.children):
            needed = 0
            for leaf in leaves(child):
                needed |= masks[leaf.layer][0]
            for other, sibling in enumerate(node.children[:at]):
                if sibling.mask & needed or not self.exact:
                    found[at] |= 1 << other
        return found

    def _passed(self, node: Cut) -> float:
        """pJ of hops between the children of an S cut, whose tiles differ."""
        direct, found = self.form.dataflow.reads(node).direct, 0
        for child in node.children:
            for read in self.form.dataflow.reads(child).crossing:
                if direct >> read.number & 1:
                    found += self.floors.read_bytes[read.number]
        return found * self.form.batch * self.form.machine.hop_energy
