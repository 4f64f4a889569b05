"""A nest in which one cut stands for several, and for any tiles outside it: counts that are never too large.

*Stores outside that cut* may hold any tiles.  All of a tensor in one tile is not the least that they fetch:
where a stride or a dilation skips elements, a tile counts what lies between them as well, so small tiles may
come to less than the whole (``docs/uneven.md``).  What a store fetches at least is :func:`least_elements`.

*Where tiles need not divide,* a dimension of ``b`` iterations that several loops cut one after the other into
tiles of ``t`` leaves pieces that no single cut leaves: 10 in tiles of 5, then of 3, are 3, 2, 3 and 2.
Whatever the pieces are, the first one is a whole tile, none is larger, and together they have ``b``
iterations.  What is cut further inside therefore counts at least what one whole tile does, and for the other
``b - t`` iterations as much as real numbers say (``docs/proofs.md``, remainders of several cuts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as cartesian
from typing import TypeVar

import numpy as np

from tilewright.formulation.expression import Expr, as_expr, function, maximum, product, total
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.foundation.arrays import Floats
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

Size = TypeVar("Size", float, Floats)
_SAFE = 1 - 1e-12  # relative; far above the rounding of a product of a few floats


def counts_merged_cuts(operator: Operator) -> bool:
    """Whether :class:`MergedCuts` bounds an operator's counts: along no axis of one loop its outputs gape.

    Along axes of several loops they may: the whole axis counts against what is read again.
    """
    return not any(
        not axis.is_compound and any(term.stride > 1 for term in axis.terms)
        for tensor in operator.tensors
        if tensor.is_output
        for axis in tensor.axes
    )


def most_held(nest: Nest, tensor: Tensor) -> list[Expr] | None:
    """Different elements that instances ever hold at most, as factors per axis: what counts against reads.

    ``None`` where what they hold is known: tiles do not overlap, or divide what is around them.
    """
    if nest.perfect or not tensor.overlaps:
        return None
    return [as_expr(axis.extent(nest.operator.bounds)) for axis in tensor.axes]


@dataclass(frozen=True)
class MergedCuts(Nest):
    """A nest whose counts are at most those of any nest with more cuts in the place of one block.

    Of the tiles inside that block, orders and residencies both have the same; what is stored outside it may
    be cut in any way there.  Where tiles need not divide, windows do not slide.

    Parameters
    ----------
    merged : the block, outside which nothing is cut
    """

    merged: int = 0

    @classmethod
    def of(cls, nest: Nest, merged: int) -> MergedCuts:
        """A nest in which one block stands for several."""
        known = nest.merged_forms.get(merged)
        if known is None:
            known = nest.merged_forms[merged] = cls(
                nest.operator, nest.engine, nest.boundaries, nest.blocks, nest.residency, nest.perfect, merged
            )
        return known.storing(nest.engine, nest.residency)

    def delivered(
        self, tensor: Tensor, boundary: int, spread: Spread, slides: bool = False, times: Expr | None = None
    ) -> Expr:
        """Outside the block, what any tiles come to at least, whatever moves them.

        Parameters
        ----------
        tensor, boundary, spread : whose tiles, where they are stored, and which instances count
        slides : whether the store keeps the overlap of consecutive tiles
        times : what every element counts (1)
        """
        if boundary > self.merged:
            return super().delivered(tensor, boundary, spread, slides, times)
        least = self._least(tensor)
        return least if times is None else product([least, times])

    def _elements(
        self,
        tensor: Tensor,
        boundary: int,
        spread: Spread,
        moving: MappingABC[str, frozenset[int]],
        slide: tuple[str, int] | None,
    ) -> Expr:
        """Outside the block, the same."""
        if boundary > self.merged:
            return super()._elements(tensor, boundary, spread, moving, slide)
        return self._least(tensor)

    def _least(self, tensor: Tensor) -> Expr:
        """What any tiles of a tensor outside the block come to at least."""
        known: Expr | None = self.counted.get((least_elements, tensor.name))
        if known is None:
            known = self.counted[least_elements, tensor.name] = as_expr(least_elements(self.operator, tensor))
        return known

    def coverage(self, tensor: Tensor, boundary: int, spread: Spread) -> list[Expr]:
        """Outside the block, the same; of tiles that overlap the most, which is what counts against them."""
        most = most_held(self, tensor)
        if most is not None:
            return most
        if tensor.overlaps or boundary > self.merged:
            return super().coverage(tensor, boundary, spread)
        return [as_expr(_least_along(axis, self.operator.bounds)) for axis in tensor.axes]

    def _imperfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """One whole tile's pieces as they are, those of all other iterations in real numbers."""
        whole, tile = self.boundaries[0][dim], self.boundaries[self.merged + 1][dim]
        if self.merged not in counted or boundary <= self.merged or whole is tile:
            return super()._imperfect_measure(measure, dim, boundary, self._inside(counted))
        alone = self._measure(measure, dim, boundary, self._inside(counted))
        sizes, kinds = [whole, tile], ""
        for block in range(self.merged + 1, boundary):
            inner = self.boundaries[block + 1][dim]
            if inner is not sizes[-1]:
                sizes.append(inner)
                kinds += "+" if block in counted else "-"
        grows = measure == "pieces"
        factors = tuple((kind == "+") == grows for kind in kinds)
        rest = function(
            f"rest of {measure}{kinds}",
            lambda *s: math.ceil(_others([float(size) for size in s], factors, grows) * _SAFE),
            sizes,
            lambda _shared, *s: np.ceil(_others(s, factors, grows) * _SAFE),
        )
        return alone + rest

    def window(
        self,
        axis: Axis,
        boundary: int,
        counted: Callable[[str], Collection[int]],
        sides: Collection[int] = (),
        slide: tuple[str, int] | None = None,
    ) -> Expr:
        """Of tiles that overlap those that differ along one loop; or those of a whole tile.

        Parameters
        ----------
        axis : of a tensor; compound where several loops move along it
        boundary : place in the sequence of blocks at which the tiles are stored
        counted : per dimension, the blocks whose cuts count
        sides : spatial blocks whose instances lie side by side and share what overlaps
        slide : (dimension, block) along which only the new part of a window is fetched
        """
        if self.perfect or not axis.is_compound:
            return super().window(axis, boundary, counted, sides, slide)
        cuts = {term.dim: counted(term.dim) for term in axis.terms}
        inner = None if slide is not None and slide[1] == self.merged else slide
        alone = super().window(axis, boundary, lambda dim: self._inside(cuts[dim]), sides, inner)
        # Each option is a lower bound by itself; the largest one counts.
        options = [alone]
        for spread in cuts:
            own = {dim: [b for b in cuts[dim] if dim == spread or b not in sides] for dim in cuts}
            # All that a window slides over is one piece, which may have no gaps.
            swept = {dim: [b for b in own[dim] if (dim, b) != slide] for dim in cuts}
            number = {dim: self.pieces(dim, boundary, swept[dim]) for dim in cuts}
            longest = {dim: self.covered(dim, boundary, own[dim]) for dim in cuts}
            strides = {term.dim: 1 if slide is not None else term.stride for term in axis.terms}
            counts = tuple((dim, number[dim], longest[dim], strides[dim]) for dim in cuts)
            options.append(least_spanned(counts))
        return maximum(options)

    def _strided(self, axis: Axis, boundary: int, counted: Callable[[str], Collection[int]]) -> Expr:
        """What lies between the elements of one whole tile counts, of others their elements alone."""
        if self.perfect or all(term.stride == 1 for term in axis.terms):
            return super()._strided(axis, boundary, counted)
        (term,) = axis.terms
        cuts = counted(term.dim)
        inside = self._inside(cuts)
        # Iterations outside the first whole tile, each with one element at least.
        others = self.covered(term.dim, boundary, cuts) - self.covered(term.dim, boundary, inside)
        return super()._strided(axis, boundary, lambda _dim: inside) + others

    def _inside(self, counted: Collection[int]) -> list[int]:
        return sorted(block for block in counted if block != self.merged)


@lru_cache(maxsize=1 << 10)
def least_spanned(loops: tuple[tuple[str, Expr, Expr, int], ...]) -> Expr:
    """Elements that all pieces span at least, in which a loop may be cut into more pieces than are known.

    With ``N_i`` pieces of ``c_i`` iterations along loop ``i``, each with each, the sum of all extents is
    linear in every ``N_i``.  It never falls with that of a loop whose stride is 1; of others it is least with
    the fewest pieces, or with single iterations.  Nests of a machine's parts ask for the same ones.

    Parameters
    ----------
    loops : dimension, the fewest pieces along it, the iterations in them, and the elements along the axis
        that one iteration moves
    """
    gaps = [dim for dim, _, _, stride in loops if stride > 1]
    corners: list[Expr] = []
    for singles in cartesian((False, True), repeat=len(gaps)):
        single = {dim for dim, chosen in zip(gaps, singles, strict=True) if chosen}
        count = {dim: covered if dim in single else number for dim, number, covered, _ in loops}
        spans = [product(count.values())]
        for dim, number, covered, stride in loops:
            if dim not in single:
                longer = stride * (covered - number)
                spans.append(product([longer, *(count[other] for other in count if other != dim)]))
        corners.append(total(spans))
    least = corners[0]
    for corner in corners[1:]:
        least = least + corner - maximum([least, corner])
    return least


def least_elements(operator: Operator, tensor: Tensor) -> int:
    """What a store with a single instance fetches of a tensor at least, however its loops are cut outside.

    Of an axis whose loops are cut into ``N_i`` pieces of ``b_i`` iterations in all, the tiles come to a sum
    that is linear in every ``N_i``, so it is least where each loop is whole or in single iterations.  A loop
    on two axes (a diagonal) moves the tile along the first; along the others its tile has one iteration at
    least.
    """
    bounds = dict(operator.bounds)
    count = 1
    for axis in tensor.axes:
        count *= _least_along(axis, bounds)
        # A dimension that has been counted along one axis moves the tile diagonally along the next.
        bounds |= {term.dim: 1 for term in axis.terms}
    return count


def _least_along(axis: Axis, bounds: MappingABC[str, int]) -> int:
    """The same along one axis: the least over which loops are whole, and which in single iterations."""
    return min(
        axis.extent({dim: bounds[dim] if whole else 1 for dim, whole in zip(dims, wholes, strict=True)})
        * math.prod(bounds[dim] for dim, whole in zip(dims, wholes, strict=True) if not whole)
        for dims in ([term.dim for term in axis.terms],)
        for wholes in cartesian((True, False), repeat=len(dims))
    )


def _others(sizes: Sequence[Size], factors: Sequence[bool], grows: bool) -> Size:
    """What the iterations outside the first tile count, in real numbers.

    Parameters
    ----------
    sizes : the dimension, the tile, and what is cut inside it
    factors : per cut inside, whether it counts: by how much tiles shrink, or, where ``grows`` is not set,
        by how much less is covered
    grows : whether pieces are counted, rather than iterations
    """
    whole, tile, *_ = sizes
    value = (whole - tile) / tile if grows else (whole - tile) * 1.0
    for outer, inner, counts in zip(sizes[1:], sizes[2:], factors, strict=False):
        if counts:
            value = value * outer / inner if grows else value * inner / outer
    return value
