"""Access counts from directives alone: tensors, stacks and updates, and how a machine's arrays transfer.

A tensor's data come from the next declaration of the same name further out.  Going outwards from a
declaration, updates of loops that the tensor does not have leave it in place until the first update of one
that it has; from there on every update fetches again.  Of stacked copies those that need the same data share
one access where the array multicasts (inputs) or adds up (output): next-level and same-level (systolic)
transfers count alike, the outer buffer is read once.  Copies that share a tensor (``shr``) are filled once
together and pass it round whenever it is read.  Last pieces that are smaller are counted as they are
(:mod:`tilewright.formulation.mapping.tiles.pieces`, :mod:`~tilewright.formulation.mapping.tiles.windows`).

This is arithmetic on integers that shares nothing with the cost model's expressions; the tests compare
both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from tilewright.formulation.mapping.directives.model import Directives, Stack, TensorAxis, TensorTile, Update
from tilewright.formulation.mapping.evaluator import Access
from tilewright.formulation.mapping.tiles.pieces import Pieces, covered, cut, number
from tilewright.formulation.mapping.tiles.windows import fetched
from tilewright.hardware.mapping.engine import Engine

Places = frozenset[int]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A stack or update that is not idle, with the tiles around and inside it.

    ``fan`` is the index of the level above the array for a stack, ``None`` for an update.
    """

    dim: str
    outer: int
    inner: int
    fan: int | None


@dataclass(frozen=True, slots=True)
class _Copies:
    """Stacks whose copies all count, stacks whose copies count once where they need the same data, and stacks
    whose copies count once because they hold the same data together.
    """

    every: Places = frozenset()
    shared: Places = frozenset()
    pooled: Places = frozenset()

    def counted(self, own: bool) -> Places:
        return self.every | self.shared | self.pooled if own else self.every


def access_counts(directives: Directives, engine: Engine) -> list[Access]:
    """Reads, fills, updates and tile of every tensor at every level, over all buffers and the whole run.

    Parameters
    ----------
    engine : states for each array whether it multicasts and reduces, for each level whether windows slide

    Returns one row per declaration, levels from the outermost inwards.
    """
    counter = _Counter(directives, engine)
    return [row for level in range(len(engine.levels)) for row in counter.rows(level)]


class _Counter:
    """The loops of some directives, outermost first, and where every tensor is declared among them."""

    def __init__(self, directives: Directives, engine: Engine) -> None:
        self._engine = engine
        self._bounds = dict(directives.bounds)
        self._output = directives.output
        names = [level.name for level in engine.levels]
        fans = {
            axis.name: index
            for index, level in enumerate(engine.levels)
            for axis in (level.fanout.axes if level.fanout else ())
        }
        tile = dict(self._bounds)
        self._loops: list[_Loop] = []
        self._stores: dict[str, dict[int, tuple[int, TensorTile]]] = {}
        # Directives are written from the PEs outwards; counting goes from the outside in.
        for line in reversed(directives.lines):
            match line:
                case TensorTile(name, level):
                    place = (len(self._loops), line)
                    self._stores.setdefault(name, {})[names.index(level)] = place
                case Stack(dim, inner, _, axis):
                    self._add(_Loop(dim, tile[dim], inner, fans[axis]))
                    tile[dim] = inner
                case Update(dim, inner):
                    self._add(_Loop(dim, tile[dim], inner, None))
                    tile[dim] = inner
                case _:
                    assert_never(line)

    def _add(self, loop: _Loop) -> None:
        if loop.outer != loop.inner:
            self._loops.append(loop)

    # -- rows ----------------------------------------------------------------------------------------

    def rows(self, level: int) -> list[Access]:
        """All tensors that a level holds."""
        result = []
        for name, stores in self._stores.items():
            if level in stores:
                counts = self._counts(name, level)
                tile, hops = stores[level][1].size, self._hops(name, level)
                result.append(Access(self._engine.levels[level].name, name, *counts, tile, hops))
        return result

    def _counts(self, name: str, level: int) -> tuple[int, int, int]:
        stores = self._stores[name]
        here, tensor = stores[level]
        inner = min((other for other in stores if other > level), default=None)
        end = len(self._loops) if inner is None else stores[inner][0]
        outside = self._stacks(0, here)
        at_store = _Copies(outside)
        between = self._stacks(here, end)
        below = self._below(name, outside, between, inner)
        first = level == min(stores)
        if name == self._output:
            reads, fills, updates = self._output_counts(
                tensor, level, (here, at_store), (None if inner is None else end, below)
            )
            if not first and self._engine.levels[level].timing.drained:
                reads += self._delivered(tensor, here, at_store, False)
            return reads, fills, updates
        # The outermost store holds the tensor from the beginning.
        fills = 0
        if not first:
            pool = self._pool(name, level)
            together = _Copies(outside - pool, pooled=pool)
            fills = self._delivered(tensor, here, together, self._engine.levels[level].sliding_window)
        return self._read(tensor, inner, end, below), fills, 0

    def _read(self, tensor: TensorTile, inner: int | None, end: int, below: _Copies) -> int:
        """Elements that the next inner level, or the PEs, read."""
        if inner is None:
            return self._iterations(tensor, below)
        return self._delivered(tensor, end, below, self._engine.levels[inner].sliding_window)

    def _below(self, name: str, outside: Places, between: Places, inner: int | None) -> _Copies:
        """The copies whose accesses reach a declaration from the next one inside it."""
        # The network between two stores merges equal accesses; copies that pool their buffers count once as
        # well.
        joined = frozenset(i for i in between if self._joins(name, i))
        pool = frozenset() if inner is None else self._pool(name, inner) - joined
        return _Copies(outside | (between - joined - pool), joined, pool)

    def _pool(self, name: str, level: int) -> Places:
        """Stacks among whose copies a level's buffers share a tensor."""
        here, tensor = self._stores[name][level]
        if tensor.share == 1:
            return frozenset()
        return frozenset(i for i in self._stacks(0, here) if self._loops[i].fan == level - 1)

    def _hops(self, name: str, level: int) -> int:
        """Elements passed round: whatever one of the sharing copies reads, to all others."""
        stores = self._stores[name]
        here, tensor = stores[level]
        pool = self._pool(name, level)
        inner = min((other for other in stores if other > level), default=None)
        end = len(self._loops) if inner is None else stores[inner][0]
        below = self._below(name, self._stacks(0, here) - pool, self._stacks(here, end), inner)
        pooled_below = replace(below, pooled=below.pooled | pool)
        # One of the sharing copies has each element; it goes on to all the others.
        return (tensor.share - 1) * self._read(tensor, inner, end, pooled_below)

    def _joins(self, name: str, loop: int) -> bool:
        """Whether copies of a stack that need the same data share an access."""
        fan = self._loops[loop].fan
        assert fan is not None
        array = self._engine.levels[fan].fanout
        assert array is not None
        return array.reduction if name == self._output else array.multicast

    def _output_counts(
        self, tensor: TensorTile, level: int, store: tuple[int, _Copies], inner: tuple[int | None, _Copies]
    ) -> tuple[int, int, int]:
        """Partial sums: out at every visit, back in at every visit but the first."""
        here, copies = store
        end, below = inner
        nested = level != min(self._stores[tensor.name])
        elements = arriving = prod(self._coverage(tensor, here, copies))
        # Strided tiles span gaps, so that tiles of different stores have different sizes in sum.
        if any(len(axis.terms) == 1 and stride > 1 for axis in tensor.axes for _, stride in axis.terms):
            arriving = prod(self._coverage(tensor, len(self._loops) if end is None else end, below))
        partners = self._others(tensor, here, copies, None)
        if any(len(axis.terms) > 1 for axis in tensor.axes):
            updates = (
                self._iterations(tensor, below) if end is None else self._delivered(tensor, end, below, False)
            )
            fills = (
                max(0, self._delivered(tensor, here, copies, False) - elements * partners) if nested else 0
            )
            return max(0, updates - arriving * partners), fills, updates
        fills = elements * (self._visits(tensor, here, copies) - partners) if nested else 0
        if end is None:
            updates = self._iterations(tensor, below)
            return updates - arriving * partners, fills, updates
        visits = self._visits(tensor, end, below)
        return arriving * (visits - partners), fills, arriving * visits

    # -- which loops count ---------------------------------------------------------------------------

    def _stacks(self, first: int, last: int) -> Places:
        return frozenset(i for i in range(first, last) if self._loops[i].fan is not None)

    def _moving(self, tensor: TensorTile, boundary: int) -> int | None:
        """The innermost update outside a boundary that moves the tensor."""
        for place in range(boundary - 1, -1, -1):
            if self._loops[place].fan is None and self._loops[place].dim in tensor.dims:
                return place
        return None

    def _updates(self, last: int) -> Places:
        return frozenset(i for i in range(last) if self._loops[i].fan is None)

    def _delivered(self, tensor: TensorTile, boundary: int, copies: _Copies, slides: bool) -> int:
        """Elements that arrive at a boundary over the whole run."""
        mover = self._moving(tensor, boundary)
        slide = None
        if slides and mover is not None and self._overlaps(tensor, self._loops[mover].dim):
            slide = mover
        return self._elements(tensor, boundary, copies, mover, slide)

    def _elements(
        self, tensor: TensorTile, boundary: int, copies: _Copies, mover: int | None, slide: int | None
    ) -> int:
        """Elements of all tiles at a boundary; updates of other loops than the tensor's count outside
        ``mover``.
        """
        outside = self._updates(boundary)

        def counted(dim: str) -> Places:
            if dim in tensor.dims:
                return outside
            # Updates inside the one that moves the tensor leave it in place.
            return frozenset(i for i in outside if mover is not None and i < mover)

        met: set[str] = set()

        def pieces_of(dim: str) -> Places:
            return frozenset() if dim in met else counted(dim) | copies.counted(dim in tensor.dims)

        result = 1
        for axis in tensor.axes:
            dims = {dim for dim, _ in axis.terms}
            elsewhere = {dim for other in tensor.axes if other is not axis for dim, _ in other.terms}
            sliding = slide if slide is not None and self._loops[slide].dim in dims - elsewhere else None
            # Along two axes at once a copy's share of one is not that of the other.
            sides = frozenset() if dims & elsewhere else copies.shared
            result *= self._window(axis, boundary, pieces_of, sides, sliding)
            met |= dims
        for dim in self._bounds:
            if dim not in tensor.dims:
                result *= number(self._pieces(dim, boundary, pieces_of(dim)))
        return result

    def _overlaps(self, tensor: TensorTile, dim: str) -> bool:
        """Whether consecutive tiles along a loop can overlap."""
        for axis in tensor.axes:
            strides = dict(axis.terms)
            if len(axis.terms) > 1 and dim in strides:
                reach = 1 + sum(s * (self._bounds[d] - 1) for d, s in axis.terms if d != dim)
                if any(reach > stride for own, stride in axis.terms if own == dim):
                    return True
        return False

    def _visits(self, tensor: TensorTile, boundary: int, copies: _Copies) -> int:
        """How often one element comes and goes at a boundary."""
        return self._others(tensor, boundary, copies, self._moving(tensor, boundary))

    def _others(self, tensor: TensorTile, boundary: int, copies: _Copies, mover: int | None) -> int:
        """Pieces of the loops that a tensor does not have, outside what moves it."""
        outside = frozenset(i for i in self._updates(boundary) if mover is not None and i < mover)
        places = outside | copies.counted(False)
        return prod(
            number(self._pieces(dim, boundary, places)) for dim in self._bounds if dim not in tensor.dims
        )

    def _coverage(self, tensor: TensorTile, boundary: int, copies: _Copies) -> list[int]:
        """Different elements that the counting copies ever hold, per axis."""
        places = self._updates(boundary) | copies.counted(True)
        result = []
        for axis in tensor.axes:
            walked = self._window(axis, boundary, lambda _dim: places, frozenset(), None)
            # Overlapping tiles meet elements several times, but there are no more than the axis has.
            result.append(min(walked, axis.spanned(self._bounds)) if len(axis.terms) > 1 else walked)
        return result

    def _iterations(self, tensor: TensorTile, copies: _Copies) -> int:
        """Accesses of PEs over the whole run: each fetches one element at every iteration."""
        end = len(self._loops)
        return self._elements(tensor, end, copies, end, None)

    # -- pieces --------------------------------------------------------------------------------------

    def _pieces(self, dim: str, boundary: int, places: Places) -> Pieces:
        own = [i for i in range(boundary) if self._loops[i].dim == dim]
        tiles = (self._bounds[dim], *(self._loops[i].inner for i in own))
        return cut(tiles, tuple(i in places for i in own))

    def _window(
        self,
        axis: TensorAxis,
        boundary: int,
        counted: Callable[[str], Places],
        sides: Places,
        slide: int | None,
    ) -> int:
        """Elements along an axis, over all counted pieces of its loops."""
        if not axis.terms:
            return 1
        if len(axis.terms) == 1:
            ((dim, stride),) = axis.terms
            pieces = self._pieces(dim, boundary, counted(dim))
            return stride * covered(pieces) - (stride - 1) * number(pieces)
        sizes: list[tuple[int, ...]] = []
        kinds: list[str] = []
        for dim, _ in axis.terms:
            places = [i for i in range(boundary) if self._loops[i].dim == dim]
            sizes.append((self._bounds[dim], *(self._loops[i].inner for i in places)))
            kinds.append("".join(self._kind(i, counted(dim), sides, slide) for i in places))
        return fetched(tuple(sizes), tuple(kinds), tuple(stride for _, stride in axis.terms))

    def _kind(self, place: int, counted: Places, sides: Places, slide: int | None) -> str:
        """What a cut does (:mod:`tilewright.formulation.mapping.tiles.windows`)."""
        if place == slide:
            return ">"
        if place not in counted:
            return "-"
        return "t" if self._loops[place].fan is None else "s" if place in sides else "e"
