"""What is read in parts, results and inputs of a network: the blocks that it gives, and who reads which."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import INPUT, REGION
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.overlap import Regions
from tilewright.formulation.scheduling.tiled.reading import Crossing
from tilewright.formulation.scheduling.tiled.tiling import Borders
from tilewright.formulation.scheduling.tiled.widths import in_bytes
from tilewright.foundation.arrays import Int32s, Int64s


@dataclass(frozen=True)
class _Reads:
    """Who reads which block of a source, wherever source and readers stand among all tasks.

    Parameters
    ----------
    crossings : all that is read
    sizes, parents : bytes of the blocks that are parts, and whose parts they are: results of these tasks,
        counted from the first one of the source
    pairs : which of the crossings, whether parts are read, who reads (tasks counted from the first one of
        these readers) and the blocks: tasks counted from the source's first one, or parts from the first part
    """

    crossings: tuple[tuple[Crossing, ...], ...]
    sizes: Int64s
    parents: Int64s
    pairs: tuple[tuple[int, bool, Int32s, Int32s], ...]

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return 2 * len(self.sizes) + sum(2 * len(blocks) for _, _, _, blocks in self.pairs)


READS: Memo[_Reads] = Memo(lambda reads: reads.numbers)


@dataclass
class Source:
    """Something that is read in parts: the results of a unit, or an input of the network.

    Parameters
    ----------
    cuts : its borders by samples, channels, rows and columns
    task : the first task of the unit that makes it; negative for an input of the network
    slots : tasks per box of results; these are those of the last slot
    bits : of an element
    noted : the first task of each reader, what it reads, and per task that crossings name the one that reads,
        both counted from the first; ``None`` where these are the same
    """

    cuts: tuple[Borders, Borders, Borders, Borders]
    task: int
    slots: int
    bits: int
    noted: list[tuple[int, tuple[Crossing, ...], Int32s | None]] = field(default_factory=list)

    def note(self, first: int, crossings: tuple[Crossing, ...], at: Int32s | None = None) -> int:
        """Note reads by atoms; how many there are.

        Parameters
        ----------
        first, crossings, at : as of `noted`; the crossings are of readers of this source: of its borders
        """
        self.noted.append((first, crossings, at))
        return sum(
            math.prod(len(along.consumer) for along in each.along) * len(each.free) for each in crossings
        )

    def reads(self, add_blocks: Callable[[int, Int64s, Int64s], int]) -> Iterator[tuple[Int32s, Int32s]]:
        """Who reads which block: all products of entries along coordinates, for all tiles that share them.

        Whole results come first, then parts.

        Parameters
        ----------
        add_blocks : makes blocks of a kind, of so many bytes, that are parts of these tasks' results; returns
            the number of the first
        """
        if not self.noted:
            return
        crossings = tuple(those for _, those, _ in self.noted)
        made = self.task >= 0
        # layers repeat: what the same readers read of a source is the same wherever it stands
        key = tuple(map(id, crossings)), made, self.slots, self.bits
        reads = READS.recall(crossings[0], key, lambda: self._compute(crossings))
        part = 0
        if len(reads.sizes):
            parents = reads.parents + self.task if made else reads.parents
            part = add_blocks(REGION if made else INPUT, reads.sizes, parents)
        for at, is_part, readers, blocks in reads.pairs:
            first, _, places = self.noted[at]
            mine = readers if places is None else places[readers]
            yield mine + np.int32(first), blocks + np.int32(part if is_part else self.task)

    def _compute(self, crossings: tuple[tuple[Crossing, ...], ...]) -> _Reads:
        """The reads of a source and readers that all begin with task 0."""
        flat = [each for those in crossings for each in those]
        keys, parts = self._keys(flat)
        key = np.concatenate(keys)
        made = self.task >= 0
        whole = key % parts == 0 if made else np.zeros(len(key), dtype=np.bool_)
        block = key // parts * self.slots + (self.slots - 1)
        sizes = parents = np.zeros(0, dtype=np.int64)
        if not whole.all():
            some = ~whole
            _, at, number = _distinct(key[some])
            counts = np.concatenate([_outer(np.multiply, [along.count for along in e.along]) for e in flat])
            parents = block[some][at] if made else np.full(len(at), -1, dtype=np.int64)
            sizes = in_bytes(counts[some][at] * self.bits)
            block[some] = number
        read = block.astype(np.int32)
        ends = np.cumsum([0, *map(len, keys)]).tolist()
        consumers = [
            _outer(np.add, [along.consumer for along in each.along]).astype(np.int32) for each in flat
        ]
        pairs = []
        for chosen in (whole, ~whole):
            here = 0
            for at_reader, those in enumerate(crossings):
                readers, blocks = [], []
                for each in those:
                    of = slice(ends[here], ends[here + 1])
                    free = each.free.astype(np.int32)
                    readers.append(np.add.outer(consumers[here][chosen[of]], free).ravel())
                    blocks.append(np.repeat(read[of][chosen[of]], len(free)))
                    here += 1
                if sum(map(len, blocks)):
                    pairs.append((at_reader, chosen is not whole, _joined(readers), _joined(blocks)))
        return _Reads(crossings, sizes, parents, tuple(pairs))

    def _keys(self, crossings: Sequence[Crossing]) -> tuple[list[Int64s], int]:
        """Per crossing and product of entries, a number for the part of a result that is read; and how many
        numbers a result has, that of the whole being the first.
        """
        regions_of = tuple(Regions(cuts) for cuts in self.cuts)
        numbers = [
            [along.numbered(regions) for along, regions in zip(each.along, regions_of, strict=True)]
            for each in crossings
        ]
        parts = math.prod(regions.most for regions in regions_of)
        tile, part = parts, 1
        steps: list[tuple[int, int]] = []
        for cuts, regions in zip(reversed(self.cuts), reversed(regions_of), strict=True):
            steps.append((tile, part))
            tile, part = tile * (len(cuts) - 1), part * regions.most
        steps.reverse()
        return [
            _outer(
                np.add,
                [
                    along.producer * by_tile + number * by_part
                    for along, number, (by_tile, by_part) in zip(each.along, of_each, steps, strict=True)
                ],
            )
            for each, of_each in zip(crossings, numbers, strict=True)
        ], parts


def _outer(operation: np.ufunc, columns: Sequence[Int64s]) -> Int64s:
    """All sums or products of one entry of each column, the last one running fastest."""
    combined = columns[0]
    for column in columns[1:]:
        combined = operation.outer(combined, column).ravel()
    return combined


def _joined(arrays: Sequence[Int32s]) -> Int32s:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _distinct(key: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Distinct keys, where each occurs first, and the number of every entry's key."""
    highest = int(key.max()) + 1
    if highest > 8 * len(key) + 1_000_000:
        values, first, number = np.unique(key, return_index=True, return_inverse=True)
        return values, first, number
    first_at = np.full(highest, -1, dtype=np.int64)
    first_at[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    values = np.flatnonzero(first_at >= 0)
    rank = np.zeros(highest, dtype=np.int64)
    rank[values] = np.arange(len(values))
    return values, first_at[values], rank[key]
