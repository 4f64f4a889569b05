"""Segment slicing and layer pipelining (KAPLA, section III-A; Tangram): which segments a network can be cut
into.

A *scheme* is a sequence of layers with a kind and a number of subbatches.  *Spatial* pipelining puts every
layer on tiles of its own (SET's S cut), *temporal* pipelining runs all layers in turn on all tiles (T cut).
``groups`` is the granularity of forwarding: ``batch / groups`` samples of every layer pass on together.
Where single samples do, each may pass on in ``stripes`` row stripes (`set/leaf/stripes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tilewright.formulation.scheduling.tiled.set.leaf.layers import MOST_DOWN_SETS, SetNetwork
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_borders
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.foundation.errors import InputError

Kind = Literal["S", "T"]
Orders = Literal["auto", "own", "sets", "all"]

SPATIAL: tuple[Kind, ...] = ("S",)
TEMPORAL: tuple[Kind, ...] = ("T",)
BOTH: tuple[Kind, ...] = ("S", "T")


@dataclass(frozen=True, slots=True)
class SegmentScheme:
    """One segment between two states of the network.

    Parameters
    ----------
    start, end : layers done before and after it, as sets of bits
    layers : in the order in which they stand
    kind : spatial or temporal; a single layer is temporal
    groups : subbatches
    batch : samples
    stripes : row stripes of a sample that pass on; more than one only where every subbatch is one sample
    """

    start: int
    end: int
    layers: tuple[int, ...]
    kind: Kind
    groups: int
    batch: int
    stripes: int = 1

    @property
    def tree(self) -> Node:
        """The segment as a child of a root T cut."""
        if len(self.layers) == 1 and self.groups == self.stripes == 1:
            return Leaf(self.layers[0], self.batch)
        share = self.batch // self.groups
        inner = tuple(Leaf(layer, share) for layer in self.layers)
        return Cut(self.kind, self.batch, self.groups, inner, self.stripes)


@dataclass(frozen=True)
class SegmentSpace:
    """All schemes of a network for one batch.

    Parameters
    ----------
    batch : samples of a segment
    kinds : which pipelining is tried
    longest_spatial, longest_temporal : layers of a segment
    orders : ``own``, segments of the network's own order; ``sets``, between any two down-sets, layers inside
        in the network's order; ``all``, in every topological order; ``auto``, ``sets`` where there are few
        enough of them, else ``own``
    most_down_sets : that are looked at
    stripes : most row stripes of a sample that pass on; powers of two up to that are tried

    Raises
    ------
    InputError : where there are more down-sets, and the network's own order was not allowed
    """

    network: SetNetwork
    batch: int
    kinds: tuple[Kind, ...] = BOTH
    longest_spatial: int = 8
    longest_temporal: int = 16
    orders: Orders = "auto"
    most_down_sets: int = MOST_DOWN_SETS
    stripes: int = 1
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts: Sequence[int] | None = None
        if self.orders != "own":
            starts = self.network.down_sets(self.most_down_sets)
            if starts is None and self.orders != "auto":
                raise InputError(
                    self.network.name,
                    "orders",
                    f"more than {self.most_down_sets} sets of layers can be done first, expected 'own'",
                )
            object.__setattr__(self, "orders", "sets" if self.orders == "auto" else self.orders)
        if starts is None:
            object.__setattr__(self, "orders", "own")
            starts = [(1 << count) - 1 for count in range(len(self.network) + 1)]
        object.__setattr__(self, "starts", tuple(starts))

    @property
    def longest(self) -> int:
        """Layers of the longest segment of any kind."""
        return max(
            1,
            self.longest_spatial if "S" in self.kinds else 1,
            self.longest_temporal if "T" in self.kinds else 1,
        )

    def rows(self, start: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Every end of a segment behind a down-set, with the layers in order."""
        if self.orders == "own":
            yield from self._own(start)
        elif self.orders == "sets":
            yield from self._sets(start)
        else:
            yield from self._all(start, ())

    def schemes(self, start: int) -> Iterator[SegmentScheme]:
        """Every scheme behind a down-set."""
        for end, layers in self.rows(start):
            yield from self.schemes_of(start, end, layers)

    def schemes_of(self, start: int, end: int, layers: tuple[int, ...]) -> Iterator[SegmentScheme]:
        """Every scheme of a row of layers."""
        for kind in self.kinds if len(layers) > 1 else TEMPORAL:
            if len(layers) <= max(1, self.longest_spatial if kind == "S" else self.longest_temporal):
                for groups in range(1, self.batch + 1):
                    if self.batch % groups == 0:
                        yield SegmentScheme(start, end, layers, kind, groups, self.batch)
                yield from self._striped(start, end, layers, kind)

    def _striped(self, start: int, end: int, layers: tuple[int, ...], kind: Kind) -> Iterator[SegmentScheme]:
        """The schemes that pass on row stripes of single samples."""
        stripes = 2
        while stripes <= self.stripes and stripe_borders(self.network, layers, stripes) is not None:
            yield SegmentScheme(start, end, layers, kind, self.batch, self.batch, stripes)
            stripes *= 2

    def _own(self, start: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        first = start.bit_length()
        for last in range(first, min(first + self.longest, len(self.network))):
            yield (1 << last + 1) - 1, tuple(range(first, last + 1))

    def _sets(self, start: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        level = {start}
        for _ in range(self.longest):
            level = {done | 1 << layer for done in level for layer in self.network.ready(done)}
            for end in sorted(level):
                yield end, members(end & ~start)

    def _all(self, done: int, layers: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        if len(layers) == self.longest:
            return
        for layer in self.network.ready(done):
            row = (*layers, layer)
            yield done | 1 << layer, row
            yield from self._all(done | 1 << layer, row)


def members(layers: int) -> tuple[int, ...]:
    """The layers of a set of bits, in the network's order."""
    numbers = []
    while layers:
        low = layers & -layers
        numbers.append(low.bit_length() - 1)
        layers ^= low
    return tuple(numbers)
