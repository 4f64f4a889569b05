"""What is read in parts, results and inputs of a network: the blocks that it gives, and who reads which."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import INPUT, REGION
from tilewright.formulation.scheduling.tiled.overlap import Regions
from tilewright.formulation.scheduling.tiled.reading import Crossing
from tilewright.formulation.scheduling.tiled.tiling import Borders
from tilewright.formulation.scheduling.tiled.widths import in_bytes
from tilewright.foundation.arrays import Int32s, Int64s


@dataclass(frozen=True)
class _Noted:
    """Reads of a source.

    Parameters
    ----------
    crossing : the products of entries that are read
    first : the first task of who reads
    numbers : per coordinate and entry, that of the part that is read
    """

    crossing: Crossing
    first: int
    numbers: tuple[Int64s, ...]


@dataclass
class Source:
    """Something that is read in parts: the results of a unit, or an input of the network.

    Parameters
    ----------
    cuts : its borders by samples, channels, rows and columns
    task : the first task of the unit that makes it; negative for an input of the network
    slots : tasks per box of results; these are those of the last slot
    bits : of an element
    """

    cuts: tuple[Borders, Borders, Borders, Borders]
    task: int
    slots: int
    bits: int
    regions: tuple[Regions, ...] = ()
    noted: list[_Noted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.regions = tuple(Regions(cuts) for cuts in self.cuts)

    def note(self, first: int, crossing: Crossing) -> int:
        """Note reads by atoms from task ``first`` on; how many there are."""
        numbers = tuple(
            along.numbered(regions) for along, regions in zip(crossing.along, self.regions, strict=True)
        )
        self.noted.append(_Noted(crossing, first, numbers))
        return math.prod(map(len, numbers)) * len(crossing.free)

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
        keys, parts = self._keys()
        key = _joined(keys)
        whole = key % parts == 0 if self.task >= 0 else np.zeros(len(key), dtype=np.bool_)
        block = key // parts * self.slots + (self.task + self.slots - 1)
        if not whole.all():
            some = ~whole
            _, at, number = _distinct(key[some])
            counts = [
                _outer(np.multiply, [along.count for along in each.crossing.along]) for each in self.noted
            ]
            parent = block[some][at] if self.task >= 0 else np.full(len(at), -1, dtype=np.int64)
            sizes = in_bytes(_joined(counts)[some][at] * self.bits)
            block[some] = add_blocks(REGION if self.task >= 0 else INPUT, sizes, parent) + number
        borders = np.cumsum([0, *map(len, keys)]).tolist()
        read = block.astype(np.int32)
        consumers = [
            _outer(np.add, [along.consumer for along in each.crossing.along]).astype(np.int32)
            for each in self.noted
        ]
        for chosen in (whole, ~whole):
            for each, consumer, (low, high) in zip(self.noted, consumers, pairwise(borders), strict=True):
                here = chosen[low:high]
                if here.any():
                    free = (each.crossing.free + each.first).astype(np.int32)
                    readers = np.add.outer(consumer[here], free).ravel()
                    yield readers, np.repeat(read[low:high][here], len(free))

    def _keys(self) -> tuple[list[Int64s], int]:
        """Per crossing and product of entries, a number for the part of a result that is read; and how many
        numbers a result has, that of the whole being the first.
        """
        parts = math.prod(regions.most for regions in self.regions)
        tile, part = parts, 1
        steps: list[tuple[int, int]] = []
        for cuts, regions in zip(reversed(self.cuts), reversed(self.regions), strict=True):
            steps.append((tile, part))
            tile, part = tile * (len(cuts) - 1), part * regions.most
        steps.reverse()
        return [
            _outer(
                np.add,
                [
                    along.producer * by_tile + number * by_part
                    for along, number, (by_tile, by_part) in zip(
                        each.crossing.along, each.numbers, steps, strict=True
                    )
                ],
            )
            for each in self.noted
        ], parts


def _outer(operation: np.ufunc, columns: Sequence[Int64s]) -> Int64s:
    """All sums or products of one entry of each column, the last one running fastest."""
    combined = columns[0]
    for column in columns[1:]:
        combined = operation.outer(combined, column).ravel()
    return combined


def _joined(arrays: list[Int64s]) -> Int64s:
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
