"""All trees over an order but for those that are in no better tree than the one known, or not needed.

Left out, together with everything that would contain them:

- subtrees without hope for every number of tiles (`outlook.py`);
- T cuts with a T cut without subbatches inside whose children may as well be their own.  Their energies,
  cycles and processing times are the same, as long as all reads stay direct that were; their buffers hold no
  more, since neighbours among more children are fewer layers each, and what waits for a child of the inner
  cut waits for the whole of it otherwise.  So the flat tree, which is there too, is as good in every tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node
from tilewright.solvers.scheduling.tiled.set.outlook import Figures, Outlook
from tilewright.solvers.scheduling.tiled.set.outlook_kernel import fewer

Kind = Literal["S", "T"]


class HopefulTrees:
    """All trees over an order but for those left out; kept by order.

    Parameters
    ----------
    stop : whether the time is up; what comes then is not all
    """

    def __init__(self, outlook: Outlook, stop: Callable[[], bool] = lambda: False) -> None:
        self.outlook, self.stop = outlook, stop
        self.dataflow = outlook.form.dataflow
        self._kept: dict[tuple[tuple[int, ...], int], tuple[Node, ...]] = {}
        self._needed: dict[int, int] = {}

    def over(self, order: tuple[int, ...], samples: int) -> tuple[Node, ...]:
        """Trees whose cuts have at least two children."""
        key = order, samples
        found = self._kept.get(key)
        if found is None:
            found = tuple(self._leaf(order[0], samples) if len(order) == 1 else self._cuts(order, samples))
            self._kept[key] = found
        return found

    def _hopeless(self, node: Node) -> bool:
        return self.outlook.hopeless(node.mask, node.batch, self.outlook.figures(node))

    def _leaf(self, layer: int, samples: int) -> Iterator[Node]:
        leaf = Leaf(layer, samples)
        if not self._hopeless(leaf):
            yield leaf

    def _cuts(self, order: tuple[int, ...], samples: int) -> Iterator[Node]:
        kinds: tuple[Kind, ...] = ("S", "T")
        for groups in range(1, samples + 1):
            if samples % groups == 0:
                for kind in kinds:
                    for children in self._rows(order, samples, groups, kind, ()):
                        made = Cut(kind, samples, groups, children)
                        if not self._hopeless(made):
                            yield made

    def _rows(
        self, order: tuple[int, ...], samples: int, groups: int, kind: Kind, before: tuple[Node, ...]
    ) -> Iterator[tuple[Node, ...]]:
        """Rows of subtrees over what is left of an order, behind those that are chosen."""
        for count in range(1, len(order) + bool(before)):
            rest = order[count:]
            for child in self.over(order[:count], samples // groups):
                if self.stop():
                    return
                row = (*before, child)
                if kind == "T" and self._needless(row, last=not rest):
                    continue
                if not rest:
                    yield row
                elif not before or not self._stuck(Cut(kind, samples, groups, row)):
                    yield from self._rows(rest, samples, groups, kind, row)

    def _stuck(self, begun: Cut) -> bool:
        """Whether the first children of a cut leave no hope, whatever follows."""
        outlook = self.outlook
        found = outlook.figures(begun)
        if begun.kind == "S":  # children get some of its tiles, but not all of them
            parts = outlook.parts(begun, 0, 0)
            slots = begun.groups + self.dataflow.stages(begun).last
            energy = np.add.reduce([fewer(one.energy) for one in parts])
            slowest = slots * np.maximum.reduce([fewer(one.cycles) for one in parts])
            area = begun.groups * np.add.reduce([fewer(one.area) for one in parts])
            found = Figures(energy, slowest, area, found.moved)
        return outlook.hopeless(begun.mask, begun.batch, found)

    def _needless(self, row: tuple[Node, ...], *, last: bool) -> bool:
        """Whether a child of a T cut may give its place to its own children.

        Parameters
        ----------
        row : children so far; the last but one is judged, and the last one too where no other follows
        """
        return (len(row) > 1 and self._dissolves(row, -2)) or (last and self._dissolves(row, -1))

    def _dissolves(self, row: tuple[Node, ...], at: int) -> bool:
        node = row[at]
        if not isinstance(node, Cut) or node.kind != "T" or node.groups > 1:
            return False
        place = len(row) + at
        if place and any(self._reads(child) & row[place - 1].mask for child in node.children[1:]):
            return False
        if at == -2 and any(child.mask & self._reads(row[-1]) for child in node.children[:-1]):
            return False
        apart = 0.0
        for child in row[:place]:
            apart += self.dataflow.processing_time(child)
        together = apart + self.dataflow.processing_time(node)
        for child in node.children:
            apart += self.dataflow.processing_time(child)
        return apart == together

    def _reads(self, node: Node) -> int:
        """Layers that a node reads, as a set of bits."""
        mask = node.mask
        found = self._needed.get(mask)
        if found is None:
            found = self._needed[mask] = sum(
                {
                    1 << read.producer
                    for layer in range(mask.bit_length())
                    if mask >> layer & 1
                    for read in self.dataflow.numbers(layer)
                }
            )
        return found
