"""All trees over a set of layers but for those that are in no better tree than the one known, or not needed.

Trees that differ in the order of children alone are found once where nothing but their places tells them
apart (`members.py`): children of an S cut in any order, and those of a T cut in all orders in which the same
reads are direct.  Bounds are the same for all of them.  Left out, together with everything that would contain
them:

- subtrees without hope for every number of tiles (`outlook.py`);
- T cuts with a T cut without subbatches inside whose children may as well be their own.  Their energies,
  cycles and processing times are the same, as long as all reads stay direct that were; their buffers hold no
  more, since neighbours among more children are fewer layers each, and what waits for a child of the inner
  cut waits for the whole of it otherwise.  So the flat tree, which is there too, is as good in every tree.
  Which reads stay direct follows from which are, so that this holds for all orders or for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from tilewright.formulation.scheduling.tiled.set.tree import Cut, Leaf, Node
from tilewright.solvers.scheduling.tiled.set.members import Members
from tilewright.solvers.scheduling.tiled.set.outlook import Figures, Outlook
from tilewright.solvers.scheduling.tiled.set.outlook_kernel import fewer

Kind = Literal["S", "T"]
Row = tuple[Node, ...]


class HopefulTrees:
    """All trees over a set of layers but for those left out, one for all that differ in order alone.

    Parameters
    ----------
    stop : whether the time is up; what comes then is not all
    """

    def __init__(self, outlook: Outlook, stop: Callable[[], bool] = lambda: False) -> None:
        self.outlook, self.stop = outlook, stop
        self.dataflow, self.members = outlook.form.dataflow, Members(outlook)
        self._before = [mask for mask, _ in outlook.form.network.masks]
        self._kept: dict[tuple[int, int], tuple[Node, ...]] = {}
        self._needed: dict[int, int] = {}
        self._ends: dict[tuple[int, int], tuple[int, ...]] = {}

    def over(self, mask: int, samples: int) -> tuple[Node, ...]:
        """Trees whose cuts have at least two children.

        Parameters
        ----------
        mask : layers that can follow each other without any other between them, as a set of bits
        """
        key = mask, samples
        found = self._kept.get(key)
        if found is None:
            lone = mask & (mask - 1) == 0
            found = tuple(self._leaf(mask.bit_length() - 1, samples) if lone else self._cuts(mask, samples))
            self._kept[key] = found
        return found

    def _leaf(self, layer: int, samples: int) -> Iterator[Node]:
        leaf = Leaf(layer, samples)
        if self.outlook.leaves_hope(leaf):
            yield leaf

    def _cuts(self, mask: int, samples: int) -> Iterator[Node]:
        kinds: tuple[Kind, ...] = ("S", "T")
        for groups in range(1, samples + 1):
            if samples % groups == 0:
                for kind in kinds:
                    seen: set[object] = set()
                    for children in self._rows(mask, Cut(kind, samples, groups, ()), seen):
                        made = Cut(kind, samples, groups, children)
                        if self._new(made, seen, whole=True) and self.outlook.leaves_hope(made):
                            yield made

    def _rows(self, mask: int, begun: Cut, seen: set[object]) -> Iterator[Row]:
        """Rows of subtrees over what a cut with some children leaves of a set of layers."""
        before, kind = begun.children, begun.kind
        for end in self.ends(mask, begun.mask):
            part = end ^ begun.mask
            if part == mask or (kind == "S" and not self._in_order(before, part)):
                continue
            for child in self.over(part, begun.batch // begun.groups):
                if self.stop():
                    return
                row = (*before, child)
                if kind == "T" and self._needless(row, last=end == mask):
                    continue
                if end == mask:
                    yield row
                    continue
                grown = Cut(kind, begun.batch, begun.groups, row)
                if self._new(grown, seen, whole=False) and not (before and self._stuck(grown)):
                    yield from self._rows(mask, grown, seen)

    def ends(self, mask: int, done: int) -> tuple[int, ...]:
        """Larger sets of layers of a set with all that they read of it, from one of these on."""
        found = self._ends.get((mask, done))
        if found is None:
            level, every = {done}, set()
            while level:
                level = {
                    one | 1 << layer
                    for one in level
                    for layer in range(mask.bit_length())
                    if (mask & ~one) >> layer & 1 and not self._before[layer] & mask & ~one
                }
                every |= level
            found = self._ends[mask, done] = tuple(sorted(every))
        return found

    def _in_order(self, before: Row, part: int) -> bool:
        """Whether a child of an S cut stands as far ahead as it might, of several the one with the first
        layer.

        Every order of children can be brought into just one such order by exchanging neighbours of which none
        reads the other.
        """
        if not self.outlook.exact:
            return True
        needed, first = self.needed(part), part & -part
        for child in reversed(before):
            if needed & child.mask:
                return True
            if child.mask & -child.mask > first:
                return False
        return True

    def _new(self, made: Cut, seen: set[object], *, whole: bool) -> bool:
        """Whether no cut before differs in the order of its children only (if begun, but for the last)."""
        if made.kind == "S" or not self.outlook.exact:
            return True
        reads = self.dataflow.reads(made)
        key = frozenset(made.children), None if whole else made.children[-1], reads.direct, reads.stored
        if key in seen:
            return False
        seen.add(key)
        return True

    def _stuck(self, begun: Cut) -> bool:
        """Whether the first children of a cut leave no hope, whatever follows."""
        outlook = self.outlook
        if begun.kind == "T":
            return outlook.hopeless(begun.mask, begun.batch, outlook.figures(begun))
        parts = outlook.parts(begun, 0, 0, False)  # they get some of its tiles, but not all of them
        slots = begun.groups + self.dataflow.stages(begun).last
        begin, apart = outlook.places.begin, outlook.places.apart
        energy = np.add.reduce([fewer(one.energy, begin, apart) for one in parts])
        slowest = slots * np.maximum.reduce([fewer(one.cycles, begin, apart) for one in parts])
        area = begun.groups * np.add.reduce([fewer(one.area, begin, apart) for one in parts])
        moved = begun.groups * np.add.reduce([fewer(one.moved, begin, apart) for one in parts])
        return outlook.hopeless(begun.mask, begun.batch, Figures(energy, slowest, area, moved))

    def _needless(self, row: Row, *, last: bool) -> bool:
        """Whether a child of a T cut may give its place to its own children.

        Parameters
        ----------
        row : children so far; the last but one is judged, and the last one too where no other follows
        """
        return (len(row) > 1 and self._dissolves(row, -2)) or (last and self._dissolves(row, -1))

    def _dissolves(self, row: Row, at: int) -> bool:
        node = row[at]
        if not isinstance(node, Cut) or node.kind != "T" or node.groups > 1:
            return False
        place = len(row) + at
        ahead = row[place - 1].mask if place else 0
        behind = self.needed(row[-1].mask) if at == -2 else 0
        for children in self.members.alike(node):
            if any(self.needed(child.mask) & ahead for child in children[1:]):
                return False
            if any(child.mask & behind for child in children[:-1]):
                return False
        apart = 0.0
        for child in row[:place]:
            apart += self.dataflow.processing_time(child)
        together = apart + self.dataflow.processing_time(node)
        for child in node.children:
            apart += self.dataflow.processing_time(child)
        return apart == together

    def needed(self, mask: int) -> int:
        """Layers that some layers read, as sets of bits."""
        found = self._needed.get(mask)
        if found is None:
            found = 0
            for layer in range(mask.bit_length()):
                if mask >> layer & 1:
                    found |= self._before[layer]
            self._needed[mask] = found
        return found
