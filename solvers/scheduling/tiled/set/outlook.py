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
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node
from tilewright.solvers.scheduling.tiled.set.any_order import allocations_in_any_order
from tilewright.solvers.scheduling.tiled.set.floors import Floors
from tilewright.solvers.scheduling.tiled.set.outlook_kernel import least_values, side_by_side

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

PARTS = 2**14
"""Parts of a cycle in which processing times are counted, if they can be."""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Bounds on a subtree.

    Parameters
    ----------
    energy, cycles : by number of tiles, from none on: pJ of the whole batch, and cycles of one run
    area : likewise, tiles times cycles that it has for itself in one run
    moved : bytes of DRAM in one run
    """

    energy: Floats
    cycles: Floats
    area: Floats
    moved: float


def alone(energy: Floats, cycles: Floats, moved: float) -> Figures:
    """Figures of a whole subtree, which has its tiles for itself while it runs."""
    return Figures(energy, cycles, cycles * np.maximum(np.arange(len(cycles)), 1), moved)


def sums_are_exact(times: tuple[float, ...], batch: int) -> bool:
    """Whether processing times of all trees are without rounding, so that no order of sums matters.

    They are sums of the layers' times, which S cuts multiply by integers and divide by powers of two.
    """
    whole = all((one * PARTS).is_integer() for one in times)
    return whole and batch & (batch - 1) == 0 and sum(times) * PARTS * batch * 2 ** len(times) < 2**53


class Outlook:
    """Judges subtrees of one network against the value of a tree that is known."""

    def __init__(self, form: ClosedForm, floors: Floors, known: float) -> None:
        self.form, self.floors, self.known = form, floors, known
        self.tiles = form.engine.grid.tiles
        self._figures: dict[tuple[Node, int, int], Figures] = {}
        self._around: dict[int, tuple[float, float, float, float]] = {}
        self.spared = (1 + 3 * form.batch) * len(form.network) * floors.rounding
        self._outputs = sum(1 << i for i, one in enumerate(form.network.layers) if one.is_output)
        self._rate = float(form.machine.dram_rate)
        self._lost: dict[Node, Floats] = {}
        self._known_tables: dict[tuple[float, ...], Longs] = {}
        self.exact = sums_are_exact(form.dataflow.times, form.batch)

    def hopeless(self, mask: int, batch: int, figures: Figures) -> bool:
        """Whether no tree with a subtree of these layers, batch and figures is better than the known one."""
        return bool((self._values(mask, batch, figures) >= self.known).all())

    def leaves_hope(self, node: Node) -> bool:
        """Whether a subtree leaves hope for any number of tiles; keeps for which."""
        figures = self.figures(node)
        lost = self._values(node.mask, node.batch, figures) >= self.known
        self._lost[node] = np.where(lost, math.inf, 0.0)
        return not lost.all()

    def _values(self, mask: int, batch: int, figures: Figures) -> Floats:
        """By number of tiles of a subtree, what no tree with it undercuts; where nothing is known, nothing
        that fits.
        """
        energy, path, moved, work = self._rest(mask)
        runs, form = self.form.batch // batch, self.form
        slowest = (figures.moved * runs + moved) / self._rate
        return least_values(
            figures.energy,
            figures.cycles,
            figures.area,
            energy - self.spared,
            path,
            work,
            float(runs),
            slowest,
            form.energy_power,
            form.delay_power,
        )

    def others(self, mask: int) -> tuple[float, float]:
        """pJ and cycles of the segments of all other layers, which pass everything on through DRAM."""
        floors, network = self.floors, self.form.network
        energy = moved = work = 0.0
        for layer, one in enumerate(network.layers):
            if mask >> layer & 1:
                continue
            numbers = self.form.dataflow.numbers(layer)
            fetched = floors.fetched_bytes(
                layer, sum(1 << read.number for read in numbers if mask >> read.producer & 1)
            )
            energy += floors.least_energy(layer, fetched)
            moved += floors.compulsory[layer] + self.form.batch * fetched
            work += floors.work[layer]
            if network.masks[layer][1] & mask and not one.is_output:
                moved += one.stored_bytes(self.form.batch)
        return energy + moved * floors.byte_energy - self.spared, max(work / self.tiles, moved / self._rate)

    def _rest(self, mask: int) -> tuple[float, float, float, float]:
        """pJ of all other layers, the longest path of others through a subtree, what others move, and their
        work.
        """
        found = self._around.get(mask)
        if found is None:
            network, floors = self.form.network, self.floors
            count = len(network)
            outside = [layer for layer in range(count) if not mask >> layer & 1]
            moved = float(sum(floors.compulsory[layer] for layer in outside))
            energy = sum(floors.tile_energy[layer] for layer in outside) + moved * floors.byte_energy
            times = [0.0 if mask >> layer & 1 else floors.hull(layer)[0][0] for layer in range(count)]
            up, down = [0.0] * count, [0.0] * count
            for layer in range(count):
                up[layer] = times[layer] + max((up[one] for one in network.before[layer]), default=0.0)
            for layer in reversed(range(count)):
                down[layer] = times[layer] + max((down[one] for one in network.after[layer]), default=0.0)
            path = max(up[layer] + down[layer] for layer in range(count) if mask >> layer & 1)
            work = sum(floors.work[layer] for layer in outside)
            found = self._around[mask] = energy, path, moved, work
        return found

    def figures(self, node: Node, stored: int = 0, fetched: int = 0) -> Figures:
        """Bounds on a subtree by the number of its tiles.

        Parameters
        ----------
        stored : layers whose results go to DRAM for readers outside of it, as a set of bits
        fetched : reads of results from outside of it that are not direct, as a set of bits
        """
        reads = self.form.dataflow.reads(node)
        stored = (stored | self._outputs | reads.stored) & node.mask
        key = node, stored, fetched
        found = self._figures.get(key)
        if found is None:
            found = self._leaf(*key) if isinstance(node, Leaf) else self._cut(node, stored, fetched)
            lost = self._lost.get(node)
            if lost is not None:
                found = replace(found, energy=found.energy + lost)
            self._figures[key] = found
        return found

    def _leaf(self, node: Node, stored: int, fetched: int) -> Figures:
        assert isinstance(node, Leaf)
        inputs = self.floors.fetched_bytes(node.layer, fetched)
        energy, cycles = self.floors.leaf_figures(node.layer, node.batch, inputs)
        moved = self.floors.moved(node.layer, node.batch, bool(stored), fetched)
        runs = self.form.batch // node.batch
        moving = max(0.0, moved - 1) / self._rate
        energy = energy + moved * runs * self.floors.byte_energy
        return alone(energy, np.maximum(cycles, moving), max(0.0, moved - 1))

    def parts(self, node: Cut, stored: int, fetched: int) -> list[Figures]:
        """Bounds on the children of a cut."""
        direct = self.form.dataflow.reads(node).direct
        found = []
        for child in node.children:
            missed = 0
            for read in self.form.dataflow.reads(child).crossing:
                bit = 1 << read.number
                if fetched & bit or (node.mask >> read.producer & 1 and not direct & bit):
                    missed |= bit
            found.append(self.figures(child, stored, missed))
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
            for tiles in range(self.tiles + 1):
                given = allocations_in_any_order(times, tiles)
                if given is None:
                    rows.append([(-1,) * len(times)])
                else:
                    rows.append([one for one in given if min(one) > 0 and utilization(times, one) >= least])
            found = np.zeros((self.tiles + 1, max(1, *map(len, rows)), len(times)), dtype=np.int64)
            for tiles, row in enumerate(rows):
                if row:
                    found[tiles, : len(row)] = row
            self._known_tables[times] = found
        return found

    def _cut(self, node: Cut, stored: int, fetched: int) -> Figures:
        parts = self.parts(node, stored, fetched)
        moved = node.groups * sum(one.moved for one in parts)
        if node.kind == "T":
            energy, cycles = parts[0].energy, parts[0].cycles
            for one in parts[1:]:
                energy, cycles = energy + one.energy, cycles + one.cycles
            return alone(energy, node.groups * cycles, moved)
        slots = float(node.groups + self.form.dataflow.stages(node).last)
        floor = 0.0 if self.form.rules.segment_bounds_only else moved / self._rate
        energies, times = np.array([one.energy for one in parts]), np.array([one.cycles for one in parts])
        energy, cycles = side_by_side(energies, times, self._tables(node), slots, floor)
        return alone(energy + self._passed(node), cycles, moved)

    def _passed(self, node: Cut) -> float:
        """pJ of hops between the children of an S cut, whose tiles differ."""
        direct, found = self.form.dataflow.reads(node).direct, 0
        for child in node.children:
            for read in self.form.dataflow.reads(child).crossing:
                if direct >> read.number & 1:
                    found += self.floors.read_bytes[read.number]
        return found * self.form.batch * self.form.machine.hop_energy
