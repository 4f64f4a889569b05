"""How the blocks of a nest cut dimensions: trip counts, sizes of tiles, pieces, and windows over them.

Between blocks stand boundaries: the tile size of every dimension at that point.  All sizes are expressions,
of numbers (one mapping) or of variables (the whole map space).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from tilewright.formulation.expression import Expr, as_expr, ceil_div, function, maximum, product, total
from tilewright.formulation.mapping.nests.blocks import Block, Residency
from tilewright.formulation.mapping.tiles import piece_arrays, pieces, window_arrays, windows
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

_MEASURES = {
    "pieces": (pieces.number, piece_arrays.number),
    "covered": (pieces.covered, piece_arrays.covered),
}


@dataclass(frozen=True)
class Tiling:
    """Blocks, boundaries and residencies of one operator on one engine.

    Parameters
    ----------
    boundaries : ``len(blocks) + 1`` tile sizes per dimension; the first is the whole operator, the last is
        one iteration
    blocks : outermost first
    residency : per tensor name
    perfect : whether every tile size divides the one around it, so that all pieces are equal
    """

    operator: Operator
    engine: Engine
    boundaries: tuple[MappingABC[str, Expr], ...]
    blocks: tuple[Block, ...]
    residency: MappingABC[str, Residency]
    perfect: bool = True

    def trip(self, block: int, dim: str) -> Expr:
        """Iterations of a dimension's loop in a block."""
        trips = self._trips.get((block, dim))
        if trips is None:
            # Expressions are hashed at building; statements ask for the same trip counts thousands of times.
            trips = ceil_div(self.boundaries[block][dim], self.boundaries[block + 1][dim])
            self._trips[block, dim] = trips
        return trips

    def trips(self, blocks: Iterable[int], dims: Iterable[str] | None = None) -> list[Expr]:
        """The trip counts of several loops, to be multiplied."""
        names = list(self.operator.bounds if dims is None else dims)
        return [self.trip(block, dim) for block in blocks for dim in names]

    def extent(self, axis: Axis, boundary: int) -> Expr:
        """Elements that a tile at a boundary spans along a tensor axis."""
        tile = self.boundaries[boundary]
        # ``1 + sum of stride * (tile - 1)``, written so that it stays linear in the tiles.
        offset = 1 - sum(term.stride for term in axis.terms)
        return total([offset, *(term.stride * tile[term.dim] for term in axis.terms)])

    def extents(self, tensor: Tensor, boundary: int) -> tuple[Expr, ...]:
        """A tile's extents along every axis, to be multiplied."""
        extents = self._extents.get((tensor.name, boundary))
        if extents is None:
            extents = tuple(self.extent(axis, boundary) for axis in tensor.axes)
            self._extents[tensor.name, boundary] = extents
        return extents

    def footprint(self, tensor: Tensor, boundary: int) -> Expr:
        """Elements of a tensor's tile at a boundary."""
        return product(self.extents(tensor, boundary))

    @cached_property
    def _trips(self) -> dict[tuple[int, str], Expr]:
        """What :meth:`trip` has built; statements ask for the same ones very often."""
        return {}

    @cached_property
    def _extents(self) -> dict[tuple[str, int], tuple[Expr, ...]]:
        """What :meth:`extents` has built."""
        return {}

    @cached_property
    def _measures(self) -> dict[tuple[str, str, int, tuple[int, ...]], Expr]:
        """What :meth:`pieces` and :meth:`covered` have built."""
        return {}

    @cached_property
    def temporal(self) -> tuple[int, ...]:
        """Indices of the temporal blocks, outermost first."""
        return tuple(index for index, block in enumerate(self.blocks) if block.is_temporal)

    @cached_property
    def spatial(self) -> tuple[int, ...]:
        """Indices of the spatial blocks, outermost first."""
        return tuple(index for index, block in enumerate(self.blocks) if not block.is_temporal)

    def spatial_between(self, outer: int, inner: int) -> tuple[int, ...]:
        """Spatial blocks between two boundaries."""
        return tuple(index for index in self.spatial if outer <= index < inner)

    def pieces(self, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """How many pieces a dimension is cut into at a boundary, counting the cuts of some blocks only.

        Of a block that is not counted the first piece stands for all: it is the largest.
        """
        return self._measure("pieces", dim, boundary, counted)

    def cut_to(self, dim: str, boundary: int, size: int) -> Expr:
        """How many pieces of at most some size a dimension is cut into, within those at a boundary."""
        if self.perfect:
            here = self.pieces(dim, boundary, range(boundary))
            return product([here, ceil_div(self.boundaries[boundary][dim], size)])
        sizes, kinds = self._chain(dim, boundary, lambda _block: "+")
        flags = (True,) * len(sizes)
        return function(
            f"pieces{kinds}+",
            lambda *s: pieces.number(pieces.cut(s, flags)),
            (*sizes, size),
            lambda shared, *s: piece_arrays.number(piece_arrays.cut(s, flags, shared)),
        )

    def covered(self, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """Iterations in all those pieces together."""
        return self._measure("covered", dim, boundary, counted)

    def _measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """A measure of a dimension's pieces; statements ask for the same ones very often."""
        key = measure, dim, boundary, tuple(counted)
        node = self._measures.get(key)
        if node is None:
            made = self._perfect_measure if self.perfect else self._imperfect_measure
            node = self._measures[key] = made(*key)
        return node

    def _perfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        # Where tiles divide, all pieces are equal and their number telescopes.
        number = product(self.trips([block for block in counted if block < boundary], [dim]))
        return number if measure == "pieces" else product([self.boundaries[boundary][dim], number])

    def _imperfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        sizes, kinds = self._chain(dim, boundary, lambda block: "+" if block in counted else "-")
        flags = tuple(kind == "+" for kind in kinds)
        count_one, many = _MEASURES[measure]
        return function(
            f"{measure}{kinds}",
            lambda *s: count_one(pieces.cut(s, flags)),
            sizes,
            lambda shared, *s: many(piece_arrays.cut(s, flags, shared)),
        )

    def _chain(self, dim: str, last: int, kind: Callable[[int], str]) -> tuple[tuple[Expr, ...], str]:
        """Tile sizes down to a boundary, without cuts that are none, and the kind of every cut.

        Of a cut of kind ``-`` only the first piece counts.
        """
        sizes = [self.boundaries[0][dim]]
        kinds = ""
        for block in range(last):
            inner = self.boundaries[block + 1][dim]
            # No loop here, so no cut: chains without them are shared by more nests.
            if inner is sizes[-1]:
                continue
            if kinds.endswith("-") and kind(block) == "-":
                sizes[-1] = inner  # the first piece of a first piece
            else:
                sizes.append(inner)
                kinds += kind(block)
        return tuple(sizes), kinds

    def window(
        self,
        axis: Axis,
        boundary: int,
        counted: Callable[[str], Collection[int]],
        sides: Collection[int] = (),
        slide: tuple[str, int] | None = None,
    ) -> Expr:
        """Elements along a tensor axis, over all counted pieces of its loops.

        Parameters
        ----------
        boundary : where the tile is stored
        counted : per dimension, the blocks whose cuts count
        sides : spatial blocks among them whose instances share equal tiles
        slide : the dimension along which a window slides, and the block of its loop
        """
        # One loop along the axis: nothing overlaps.
        if not axis.is_compound:
            return self._strided(axis, boundary, counted)
        if self.perfect:
            return self._perfect_window(axis, boundary, counted, sides, slide)
        sizes: list[tuple[Expr, ...]] = []
        kinds: list[str] = []
        for term in axis.terms:

            def kind(block: int, dim: str = term.dim) -> str:
                if (dim, block) == slide:
                    return ">"
                if block not in counted(dim):
                    return "-"
                # ``t`` in time, ``s`` side by side and sharing, ``e`` each instance for itself.
                return "t" if self.blocks[block].is_temporal else "s" if block in sides else "e"

            chain, cuts = self._chain(term.dim, boundary, kind)
            sizes.append(chain)
            kinds.append(cuts)
        strides = tuple(term.stride for term in axis.terms)
        shape, flat = tuple(kinds), [size for chain in sizes for size in chain]
        lengths = [len(chain) for chain in sizes]

        def chains(values: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
            rest = iter(values)
            return tuple(tuple(islice(rest, length)) for length in lengths)

        # The lengths and kinds name the function: one compiled count serves all nests of this form.
        return function(
            f"fetched{lengths}{shape}{strides}",
            lambda *v: windows.fetched(chains(v), shape, strides),
            flat,
            lambda _shared, *v: window_arrays.fetched(chains(v), shape, strides),
        )

    def _strided(self, axis: Axis, boundary: int, counted: Callable[[str], Collection[int]]) -> Expr:
        """An axis of at most one loop: its tiles span what lies between their elements, too."""
        if not axis.terms:
            return as_expr(1)
        (term,) = axis.terms
        cuts = counted(term.dim)
        if term.stride == 1:
            return self.covered(term.dim, boundary, cuts)
        if self.perfect:
            return product([self.extent(axis, boundary), self.pieces(term.dim, boundary, cuts)])
        # Each piece spans its elements and the gaps between them, but no gap behind its last element.
        spanned = term.stride * self.covered(term.dim, boundary, cuts)
        return spanned - (term.stride - 1) * self.pieces(term.dim, boundary, cuts)

    def _perfect_window(
        self,
        axis: Axis,
        boundary: int,
        counted: Callable[[str], Collection[int]],
        sides: Collection[int],
        slide: tuple[str, int] | None,
    ) -> Expr:
        extent = self.extent(axis, boundary)
        sweep = extent
        if slide is not None:
            dim, block = slide
            stride = next(term.stride for term in axis.terms if term.dim == dim)
            step = stride * self.boundaries[block + 1][dim]
            # ``min(extent, step)``: a step beyond the window's width fetches the whole of it.
            new = extent + step - maximum([extent, step])
            sweep = extent + product([self.trip(block, dim) - 1, new])
        factors: list[Expr] = [sweep]
        if sides:
            shape: list[int] = []
            values: list[Expr] = []
            for term in axis.terms:
                runs = _runs(sides)
                shape.append(len(runs))
                for run in runs:
                    # Blocks next to each other are one progression, whose step is the innermost tile.
                    tile = self.boundaries[run[-1] + 1][term.dim]
                    values += [product(self.trips(run, [term.dim])), term.stride * tile]
            progressions = tuple(shape)
            factors.append(
                function(
                    f"distinct{progressions}",
                    lambda *v: windows.distinct(progressions, v),
                    values,
                    lambda _shared, *v: window_arrays.distinct(progressions, v),
                )
            )
        for term in axis.terms:
            # Loops that neither share nor slide fetch each of their tiles anew.
            left = [n for n in counted(term.dim) if n < boundary and n not in sides]
            factors += self.trips([n for n in left if (term.dim, n) != slide], [term.dim])
        return product(factors)


def _runs(blocks: Collection[int]) -> list[list[int]]:
    """Blocks that follow each other, together."""
    runs: list[list[int]] = []
    for block in sorted(blocks):
        if runs and runs[-1][-1] == block - 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs
