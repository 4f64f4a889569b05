"""Ordered partitions of layers as the children of a cut, before anything is known of the subtrees over them.

Which reads between children are direct, and whose results go to DRAM, depends only on their layers and order:
in a T cut consecutive children pass on directly, in an S cut those whose stages differ by at most one
(section 3.3.1).

Partitions that differ only in order are enumerated once where only places distinguish them: those of an S
cut, and those of a T cut with the same direct reads (`members.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow, Read

Kind = Literal["S", "T"]


@dataclass(frozen=True, slots=True)
class Row:
    """An ordered partition: the children of a cut as sets of layers.

    Parameters
    ----------
    parts : their layers as sets of bits
    slots : times that the slowest child of an S cut takes beyond one for each subbatch; 0 for a T cut
    stored : layers whose results go to DRAM for other children, as a set of bits
    fetched : reads of other children's results that are not direct, as a set of bits
    """

    parts: tuple[int, ...]
    slots: int
    stored: int
    fetched: int


class Rows:
    """All ordered partitions of sets of layers of one network.

    Parameters
    ----------
    any_order : whether orders do not matter, as sums of processing times are without rounding
    """

    def __init__(self, dataflow: DataFlow, any_order: bool) -> None:
        network = dataflow.network
        self.any_order = any_order
        self.reads: tuple[Read, ...] = tuple(
            read for layer in range(len(network)) for read in dataflow.numbers(layer)
        )
        self._before = [mask for mask, _ in network.masks]
        self._needed: dict[int, int] = {}
        self._crossing: dict[int, int] = {}
        self._inside: dict[int, tuple[Read, ...]] = {}
        self._ends: dict[tuple[int, int], tuple[int, ...]] = {}

    def needed(self, mask: int) -> int:
        """Layers that some layers read, as sets of bits."""
        needed = self._needed.get(mask)
        if needed is None:
            needed = 0
            for layer in range(mask.bit_length()):
                if mask >> layer & 1:
                    needed |= self._before[layer]
            self._needed[mask] = needed
        return needed

    def crossing(self, mask: int) -> int:
        """Reads of some layers from outside of them, as a set of bits."""
        crossing = self._crossing.get(mask)
        if crossing is None:
            crossing = 0
            for read in self.reads:
                if mask >> read.layer & 1 and not mask >> read.producer & 1:
                    crossing |= 1 << read.number
            self._crossing[mask] = crossing
        return crossing

    def ends(self, mask: int, done: int) -> tuple[int, ...]:
        """Down-sets of ``mask`` that properly contain ``done``."""
        ends = self._ends.get((mask, done))
        if ends is None:
            level, every = {done}, set()
            while level:
                level = set(self.next_ends(mask, level))
                every |= level
            ends = self._ends[mask, done] = tuple(sorted(every))
        return ends

    def next_ends(self, mask: int, ends: Iterable[int]) -> Iterator[int]:
        """Down-sets of ``mask`` larger by one layer than those in ``ends``; some of them repeatedly."""
        for end in ends:
            for layer in range(mask.bit_length()):
                if (mask & ~end) >> layer & 1 and not self._before[layer] & mask & ~end:
                    yield end | 1 << layer

    def over(self, mask: int, kind: Kind, is_pruned: Callable[[int, int, int], bool]) -> Iterator[Row]:
        """Every ordered partition into at least two children.

        Parameters
        ----------
        mask : layers that can follow each other without any other between them, as a set of bits
        kind : of the cut
        is_pruned : by what an unfinished partition stores and fetches and its last stage, whether to prune it
        """
        seen: set[tuple[frozenset[int], int, int, int]] = set()
        return self._grown(mask, kind, Row((), 0, 0, 0), (), seen, is_pruned)

    def alike(self, parts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The children of a T cut in every order in which producers come first and the same reads are
        direct.
        """
        own = self._flow(parts)
        for order in self.orders(parts):
            row = tuple(parts[at] for at in order)
            if self._flow(row) == own:
                yield row

    def orders(self, parts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Every order of parts, by number, in which producers come first."""
        mask = sum(parts)
        needed = [self.needed(part) & mask & ~part for part in parts]

        def grow(order: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
            if done == mask:
                yield order
            for at, part in enumerate(parts):
                if not part & done and not needed[at] & ~done:
                    yield from grow((*order, at), done | part)

        return grow((), 0)

    def _flow(self, parts: tuple[int, ...]) -> tuple[int, int]:
        """Layers stored and reads fetched inside of a T cut."""
        mask, stored, fetched = sum(parts), 0, 0
        for at in range(1, len(parts) + 1):
            here = self._away(mask, "T", parts[:at], tuple(range(at)))
            stored, fetched = stored | here[0], fetched | here[1]
        return stored, fetched

    def _grown(
        self,
        mask: int,
        kind: Kind,
        begun: Row,
        stages: tuple[int, ...],
        seen: set[tuple[frozenset[int], int, int, int]],
        is_pruned: Callable[[int, int, int], bool],
    ) -> Iterator[Row]:
        done = sum(begun.parts)
        for end in self.ends(mask, done):
            part = end ^ done
            if part == mask or (kind == "S" and not self._in_order(begun.parts, part)):
                continue
            stage = self._stage(begun.parts, stages, part) if kind == "S" else len(stages)
            parts, places = (*begun.parts, part), (*stages, stage)
            stored, fetched = self._away(mask, kind, parts, places)
            row = Row(
                parts, max(places) if kind == "S" else 0, begun.stored | stored, begun.fetched | fetched
            )
            if kind == "T" and self.any_order:
                key = frozenset(parts), 0 if end == mask else part, row.stored, row.fetched
                if key in seen:
                    continue
                seen.add(key)
            if is_pruned(row.stored, row.fetched, row.slots):
                continue
            if end == mask:
                yield row
            else:
                yield from self._grown(mask, kind, row, places, seen, is_pruned)

    def _stage(self, before: tuple[int, ...], stages: tuple[int, ...], part: int) -> int:
        """How many subbatches after the first a child of an S cut begins."""
        latest, needed = 0, self.needed(part)
        for sibling, stage in zip(before, stages, strict=True):
            if sibling & needed:
                latest = max(latest, stage + 1)
        return latest

    def _away(
        self, mask: int, kind: Kind, parts: tuple[int, ...], places: tuple[int, ...]
    ) -> tuple[int, int]:
        """Layers stored and reads fetched as far as the children up to the last one settle it."""
        inside = self._inside.get(mask)
        if inside is None:
            inside = tuple(
                internal
                for internal in self.reads
                if mask >> internal.layer & 1 and mask >> internal.producer & 1
            )
            self._inside[mask] = inside
        last, stored, fetched = parts[-1], 0, 0
        near = [part for part, place in zip(parts, places, strict=True) if places[-1] - place <= 1]
        direct, done = sum(near), sum(parts)
        for read in inside:
            reader, producer = 1 << read.layer, 1 << read.producer
            if last & reader:
                away = bool(done & producer and not direct & producer)
            else:  # of a T cut, what the last but one makes is direct for the last alone
                away = kind == "T" and not done & reader and bool(done & ~last & producer)
            if away:
                stored |= producer
                fetched |= 1 << read.number
        return stored, fetched

    def _in_order(self, before: tuple[int, ...], part: int) -> bool:
        """Whether a child of an S cut stands as far ahead as it might, of several the one with the first
        layer.

        Every order of children can be brought into just one such order by exchanging neighbours of which none
        reads the other.
        """
        if not self.any_order:
            return True
        needed, first = self.needed(part), part & -part
        for child in reversed(before):
            if needed & child:
                return True
            if child & -child > first:
                return False
        return True
