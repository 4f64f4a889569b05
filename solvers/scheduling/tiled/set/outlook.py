"""What no tree with a given subtree undercuts, and all trees over an order but for those without hope.

A subtree gets some tiles, nobody knows how many before the tree around it is there.  So its energy and the
cycles of one run are bounded for every number of them: the leaves' floors on the tiles that they get, those
of an S cut divided as the allocation says.  A tree around it spends the floors of all other layers too, and

- the subtree's runs follow each other: it takes its cycles times its runs;
- it takes one run of the subtree and of whatever lies on a path through it, by the argument of `bounds.py`;
- it takes all work over all tiles, and all weights over DRAM's rate.

A subtree that is hopeless for every number of tiles is in no tree that is better than the one known, and is
left out together with everything that would contain it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node
from tilewright.solvers.scheduling.tiled.set.floors import Floors

Floats = npt.NDArray[np.float64]
Figures = tuple[Floats, Floats]
"""By number of tiles, from none on: pJ of the whole batch, and cycles of one run."""


class Outlook:
    """Judges subtrees of one network against the value of a tree that is known."""

    def __init__(self, form: ClosedForm, floors: Floors, known: float) -> None:
        self.form, self.floors, self.known = form, floors, known
        self.tiles = form.engine.grid.tiles
        network = form.network
        self._figures: dict[Node, Figures] = {}
        self._around: dict[int, tuple[float, float]] = {}
        self.held = [floors.weight_bytes(layer) for layer in range(len(network))]
        self.traffic = sum(self.held) + floors.outside
        self.work = sum(floors.work) / self.tiles
        self.spared = (1 + 3 * form.batch) * len(network) * floors.rounding
        self._beyond: dict[Node, float] = {}

    def hopeless(self, mask: int, batch: int, figures: Figures, beyond: float = 0.0) -> bool:
        """Whether no tree with a subtree of these layers, batch and figures is better than the known one.

        Parameters
        ----------
        beyond : bytes of results that the subtree sends through DRAM, whatever is around it
        """
        if math.isinf(self.known):
            return False
        energy, path = self._rest(mask)
        moved = self.traffic + beyond
        whole = (figures[0] + energy + moved * self.floors.byte_energy - self.spared) * (1 - 1e-9)
        runs = self.form.batch // batch
        least = max(self.work, moved / self.form.machine.dram_rate)
        cycles = np.maximum(np.maximum(figures[1] * runs, figures[1] + path), least) * (1 - 1e-9)
        form = self.form
        values = np.maximum(whole, 0.0) ** form.energy_power * cycles**form.delay_power
        return bool(values.min() >= self.known)

    def others(self, mask: int) -> tuple[float, float]:
        """pJ and cycles of the segments of all other layers."""
        floors = self.floors
        outside = [layer for layer in range(len(self.held)) if not mask >> layer & 1]
        held = sum(self.held[layer] for layer in outside)
        energy = sum(floors.tile_energy[layer] for layer in outside) + held * floors.byte_energy - self.spared
        work = sum(floors.work[layer] for layer in outside) / self.tiles
        return energy, max(work, held / self.form.machine.dram_rate)

    def beyond(self, node: Node) -> float:
        """Bytes of the whole batch that a subtree's own cuts send through DRAM: stored, and read again."""
        if isinstance(node, Leaf):
            return 0.0
        found = self._beyond.get(node)
        if found is None:
            layers, reads = self.form.network.layers, self.form.dataflow.reads(node)
            found, rest = 0.0, node.mask
            while rest:
                low = rest & -rest
                rest ^= low
                layer = low.bit_length() - 1
                one = layers[layer]
                if reads.stored & low and not one.is_output:
                    found += one.stored_bytes(self.form.batch)
                if one.stride_rows > one.taps_rows or one.stride_columns > one.taps_columns:
                    continue
                for read, made in zip(self.form.dataflow.numbers(layer), one.producers, strict=True):
                    inside = node.mask >> read.producer & 1 and not made.scattered and not made.weights
                    if inside and not reads.direct >> read.number & 1:
                        found += self.form.batch * made.channels * one.input_rows * one.input_columns
            self._beyond[node] = found
        return found

    def _rest(self, mask: int) -> tuple[float, float]:
        """pJ of all other layers, and the longest path of others through a subtree."""
        found = self._around.get(mask)
        if found is None:
            network, floors = self.form.network, self.floors
            count = len(network)
            outside = [layer for layer in range(count) if not mask >> layer & 1]
            energy = sum(floors.tile_energy[layer] for layer in outside)
            times = [0.0 if mask >> layer & 1 else floors.hull(layer)[0][0] for layer in range(count)]
            up, down = [0.0] * count, [0.0] * count
            for layer in range(count):
                up[layer] = times[layer] + max((up[one] for one in network.before[layer]), default=0.0)
            for layer in reversed(range(count)):
                down[layer] = times[layer] + max((down[one] for one in network.after[layer]), default=0.0)
            path = max(up[layer] + down[layer] for layer in range(count) if mask >> layer & 1)
            found = self._around[mask] = energy, path
        return found

    def figures(self, node: Node) -> Figures:
        """Bounds on a subtree's energy and cycles by the number of its tiles."""
        found = self._figures.get(node)
        if found is None:
            if isinstance(node, Leaf):
                found = self.floors.leaf_figures(node.layer, node.batch)
            elif node.kind == "T":
                parts = [self.figures(child) for child in node.children]
                found = sum(one[0] for one in parts), node.groups * sum(one[1] for one in parts)  # type: ignore[assignment]
            else:
                found = self._at_once(node)
            self._figures[node] = found
        return found

    def _at_once(self, node: Cut) -> Figures:
        parts = [self.figures(child) for child in node.children]
        slots = node.groups + self.form.dataflow.stages(node).last
        energy, cycles = (np.full(self.tiles + 1, math.inf) for _ in range(2))
        for tiles in range(len(parts), self.tiles + 1):
            given = self.form.allocation(node, tiles)
            if not isinstance(given, str):
                energy[tiles] = sum(one[0][count] for one, count in zip(parts, given, strict=True))
                cycles[tiles] = slots * max(one[1][count] for one, count in zip(parts, given, strict=True))
        return energy, cycles


class HopefulTrees:
    """All trees over an order but for those with a subtree without hope; kept by order.

    Parameters
    ----------
    stop : whether the time is up; what comes then is not all
    """

    def __init__(self, outlook: Outlook, stop: Callable[[], bool] = lambda: False) -> None:
        self.outlook, self.stop = outlook, stop
        self._kept: dict[tuple[tuple[int, ...], int], tuple[Node, ...]] = {}
        self._loosest: dict[Node, Figures] = {}

    def over(self, order: tuple[int, ...], samples: int) -> tuple[Node, ...]:
        """Trees whose cuts have at least two children."""
        key = order, samples
        found = self._kept.get(key)
        if found is None:
            found = tuple(self._leaf(order[0], samples) if len(order) == 1 else self._cuts(order, samples))
            self._kept[key] = found
        return found

    def _hopeless(self, node: Node) -> bool:
        outlook = self.outlook
        return outlook.hopeless(node.mask, node.batch, outlook.figures(node), outlook.beyond(node))

    def _leaf(self, layer: int, samples: int) -> Iterator[Node]:
        leaf = Leaf(layer, samples)
        if not self._hopeless(leaf):
            yield leaf

    def _cuts(self, order: tuple[int, ...], samples: int) -> Iterator[Node]:
        kinds: tuple[Literal["S", "T"], ...] = ("S", "T")
        for groups in range(1, samples + 1):
            if samples % groups == 0:
                for kind in kinds:
                    for children in self._rows(order, samples, groups, kind, ()):
                        made = Cut(kind, samples, groups, children)
                        if not self._hopeless(made):
                            yield made

    def _rows(
        self,
        order: tuple[int, ...],
        samples: int,
        groups: int,
        kind: Literal["S", "T"],
        before: tuple[Node, ...],
    ) -> Iterator[tuple[Node, ...]]:
        """Rows of subtrees over what is left of an order, behind those that are chosen."""
        for count in range(1, len(order) + bool(before)):
            rest = order[count:]
            for child in self.over(order[:count], samples // groups):
                if self.stop():
                    return
                row = (*before, child)
                if not rest:
                    yield row
                elif not before or not self._stuck(row, samples, groups, kind):
                    yield from self._rows(rest, samples, groups, kind, row)

    def _stuck(self, row: tuple[Node, ...], samples: int, groups: int, kind: Literal["S", "T"]) -> bool:
        """Whether the first children of a cut leave no hope, whatever follows."""
        mask = 0
        for child in row:
            mask |= child.mask
        outlook = self.outlook
        if kind == "T":
            parts = [outlook.figures(child) for child in row]
            energy, cycles = sum(one[0] for one in parts), groups * sum(one[1] for one in parts)
            return outlook.hopeless(mask, samples, (energy, cycles))  # type: ignore[arg-type]
        loose = [self._loose(child) for child in row]
        slots = groups + outlook.form.dataflow.stages(Cut("S", samples, groups, row)).last
        energy = sum(one[0] for one in loose)
        cycles = slots * np.maximum.reduce([one[1] for one in loose])
        return outlook.hopeless(mask, samples, (energy, cycles))  # type: ignore[arg-type]

    def _loose(self, node: Node) -> Figures:
        """Bounds on a subtree that gets some of so many tiles, but not all of them."""
        found = self._loosest.get(node)
        if found is None:
            energy, cycles = self.outlook.figures(node)
            found = tuple(  # type: ignore[assignment]
                np.concatenate([[math.inf], np.minimum.accumulate(one)[:-1]]) for one in (energy, cycles)
            )
            self._loosest[node] = found
        return found
