"""A loop nest on an engine, with tile sizes and orders that may be decided or still open.

The nest is a list of blocks, outermost first.  A temporal block holds the loops of one memory level, a
spatial block the loops spread over one array axis.  Its sizes are those of a tiling
(:mod:`tilewright.formulation.mapping.nests.tiling`); here is what buffers hold of tensors, and how often
tiles come and go.  Cost models read a nest without knowing whether its tile sizes are numbers (one mapping,
evaluated) or variables (the whole map space, searched).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from tilewright.formulation.expression import (
    Expr,
    Variable,
    as_expr,
    ceil_div,
    choose,
    is_one,
    maximum,
    product,
    where,
)
from tilewright.formulation.mapping.nests.blocks import Residency
from tilewright.formulation.mapping.nests.tiling import Tiling
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Tensor

_ALWAYS = as_expr(1)
_OF_LOOPS = ("_trips", "_extents", "_measures", "_delivered", "_visits", "_runs", "counted", "merged_forms")
"""What is built of loops, whatever is stored between them."""
_End = tuple[int | None, str | None, MappingABC[str, frozenset[int]]]
_Runs = tuple[list[_End], list[tuple[Variable | int, Expr, list[int]]]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Which instances count, by the spatial blocks that make them.

    Parameters
    ----------
    every : blocks whose instances all count
    shared : blocks whose instances count once where they need the same tile
    pooled : blocks whose instances count once for loops that the tensor does not depend on (buffer sharing),
        without looking for tiles that coincide otherwise
    """

    every: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    pooled: frozenset[int] = frozenset()

    def blocks(self, own: bool) -> frozenset[int]:
        """Blocks whose cuts count, for a dimension that the tensor depends on or not."""
        return self.every | self.shared | self.pooled if own else self.every


class Nest(Tiling):
    """The loops of one operator on one engine, and what they move."""

    @cached_property
    def _delivered(self) -> dict[Hashable, Expr]:
        """What :meth:`delivered` has built; statements ask for the same counts several times."""
        return {}

    @cached_property
    def _visits(self) -> dict[Hashable, Expr]:
        """The numbers that :meth:`visits` has built."""
        return {}

    @cached_property
    def _runs(self) -> dict[Hashable, _Runs]:
        """The cases that :meth:`_cases` has put together."""
        return {}

    @cached_property
    def counted(self) -> dict[Hashable, Any]:
        """What cost models have built of these loops, by all that it depends on besides them."""
        return {}

    @cached_property
    def merged_forms(self) -> dict[int, Any]:
        """The nests that were made of this one by merging cuts, by the block that stands for several."""
        return {}

    def storing(self, engine: Engine, residency: MappingABC[str, Residency]) -> Self:
        """The same loops on a machine that may store other tensors between them.

        What was built of the loops serves both, so arrays and orders are the same.
        """
        nest = replace(self, engine=engine, residency=residency)
        nest.__dict__.update({name: getattr(self, name) for name in _OF_LOOPS})
        return nest

    def pool(self, tensor: Tensor, level: int) -> frozenset[int]:
        """Spatial blocks among whose instances a level's buffers share a tensor (inputs and weights)."""
        fan = self.engine.levels[level - 1].fanout if level else None
        if fan is None or not fan.sharing or tensor.is_output:
            return frozenset()
        return frozenset(block for block in self.spatial if self.blocks[block].level == level - 1)

    def sharers(self, tensor: Tensor, level: int) -> list[Expr]:
        """How many of a level's buffers hold a tile together, as factors per dimension."""
        pool = sorted(self.pool(tensor, level))
        others = [dim for dim in self.operator.bounds if dim not in tensor.dims]
        return [product(self.trips(pool, [dim])) for dim in others] if pool else []

    def kept(self, tensor: Tensor, level: int) -> Expr:
        """Elements of a tensor that one buffer of a level holds: its tile, or its part of it."""
        tile = self.footprint(tensor, self.residency[tensor.name].positions[level])
        return ceil_div(tile, product(self.sharers(tensor, level)))

    def cap(self, blocks: Iterable[int]) -> int:
        """How many instances the arrays of these spatial blocks have."""
        result = 1
        for index in blocks:
            axis = self.blocks[index].axis
            assert axis is not None
            result *= axis.size
        return result

    def delivered(
        self, tensor: Tensor, boundary: int, spread: Spread, slides: bool = False, times: Expr | None = None
    ) -> Expr:
        """Elements that instances at a boundary receive over the whole run.

        A tile is fetched again whenever a loop that the tensor depends on advances outside the boundary;
        loops of the leading run, continued through consecutive blocks in which nothing else moves, reuse
        it.  Where the first loop that moves it slides a window, only the new part is fetched.

        Parameters
        ----------
        boundary : where the tile is stored
        spread : which instances count
        slides : whether the store keeps the overlap of consecutive tiles
        times : what every element counts (1)
        """

        key = tensor.name, boundary, spread, slides, times
        made = self._delivered.get(key)
        if made is not None:
            return made

        def leaf(block: int | None, slide: str | None, moving: MappingABC[str, frozenset[int]]) -> Expr:
            sliding = None if slide is None or block is None else (slide, block)
            tile = self._elements(tensor, boundary, spread, moving, sliding)
            return tile if times is None else product([tile, times])

        made = self._delivered[key] = self._walk(tensor, boundary, leaf, slides)
        return made

    def held(self, tensor: Tensor, boundary: int, spread: Spread) -> Expr:
        """Elements of the first tile at a boundary, over the instances that count."""
        return self._elements(
            tensor, boundary, spread, {dim: frozenset() for dim in self.operator.bounds}, None
        )

    def _elements(
        self,
        tensor: Tensor,
        boundary: int,
        spread: Spread,
        moving: MappingABC[str, frozenset[int]],
        slide: tuple[str, int] | None,
    ) -> Expr:
        """Elements of all tiles that the moving loops and the instances that count make."""

        met: set[str] = set()
        own, diagonal = spread.blocks(True), tensor.diagonal

        def counted(dim: str) -> list[int]:
            """Blocks whose cuts count; a loop on two axes (a diagonal) moves the tile once."""
            return [] if dim in met else sorted(moving[dim] | own)

        sides = sorted(block for block in spread.shared if block < boundary)
        factors: list[Expr] = []
        for axis in tensor.axes:
            dims = {term.dim for term in axis.terms}
            sliding = slide if slide is not None and slide[0] in dims - diagonal else None
            alike = [] if dims & diagonal else sides
            factors.append(self.window(axis, boundary, counted, alike, sliding))
            met |= dims & diagonal
        return product([*factors, *self._other_pieces(tensor, boundary, spread, moving)])

    def tile_rows(
        self, tensor: Tensor, boundary: int, spread: Spread, row: int | None, *, every: bool = False
    ) -> tuple[Expr, Expr]:
        """Tiles that instances at a boundary receive over the whole run, and rows of them.

        A row is a run along the tensor's last axis; tiles are whole ones, no window slides, and tiles of
        several instances count each.

        Parameters
        ----------
        tensor : whose tiles come
        boundary : where they are stored
        spread : which instances count
        row : elements of a row at most; ``None`` for a run of any length
        every : count every iteration outside, also where the tile stays
        """
        last = tensor.axes[-1:]
        runs = [ceil_div(self.extent(axis, boundary), row) for axis in last if row is not None]

        def counting(leading: int) -> Callable[..., Expr]:
            def leaf(_block: object, _slide: object, moving: MappingABC[str, frozenset[int]]) -> Expr:
                def counted(dim: str) -> list[int]:
                    return sorted(moving[dim] | spread.blocks(dim in tensor.dims))

                axes = tensor.axes[:leading]
                inside = {term.dim for axis in axes for term in axis.terms}
                factors = [self.window(axis, boundary, counted) for axis in axes]
                others = [dim for dim in self.operator.bounds if dim not in inside]
                return product([*factors, *(self.pieces(dim, boundary, counted(dim)) for dim in others)])

            return leaf

        def walked(leaf: Callable[..., Expr]) -> Expr:
            if every:
                outside = frozenset(block for block in self.temporal if block < boundary)
                return leaf(None, None, dict.fromkeys(self.operator.bounds, outside))
            return self._walk(tensor, boundary, leaf, False)

        return walked(counting(0)), product([walked(counting(max(0, len(tensor.axes) - 1))), *runs])

    def refetched(self, tensor: Tensor, boundary: int, spread: Spread) -> Expr:
        """Elements that instances at a boundary receive if every iteration outside fetches its tile anew."""
        outside = frozenset(block for block in self.temporal if block < boundary)
        return self._elements(tensor, boundary, spread, dict.fromkeys(self.operator.bounds, outside), None)

    def visits(self, tensor: Tensor, boundary: int, spread: Spread, leaf: Callable[[Expr], Expr]) -> Expr:
        """How often one element's tile comes and goes at a boundary, passed through ``leaf``.

        The pieces of the loops that the tensor does not depend on and that move: every element of an
        output is written back that many times.

        Parameters
        ----------
        tensor : whose tiles come and go, usually the output
        boundary : place in the sequence of blocks at which the tile is stored; 0 is outside all loops
        spread : which instances count
        leaf : what to make of the number of visits under one case of the loop orders
        """

        def end(_block: int | None, _slide: str | None, moving: MappingABC[str, frozenset[int]]) -> Expr:
            key = tensor.name, boundary, spread, tuple(moving.values())
            number = self._visits.get(key)
            if number is None:
                number = self._visits[key] = product(self._other_pieces(tensor, boundary, spread, moving))
            return leaf(number)

        return self._walk(tensor, boundary, end, False)

    def partners(self, tensor: Tensor, boundary: int, spread: Spread) -> Expr:
        """Instances that hold the same elements: pieces of the loops that the tensor does not depend on."""
        still = {dim: frozenset[int]() for dim in self.operator.bounds}
        return product(self._other_pieces(tensor, boundary, spread, still))

    def _other_pieces(
        self, tensor: Tensor, boundary: int, spread: Spread, moving: MappingABC[str, frozenset[int]]
    ) -> list[Expr]:
        others = [dim for dim in self.operator.bounds if dim not in tensor.dims]
        return [self.pieces(dim, boundary, sorted(moving[dim] | spread.blocks(False))) for dim in others]

    def coverage(self, tensor: Tensor, boundary: int, spread: Spread) -> list[Expr]:
        """Different elements that the counting instances at a boundary ever hold, as factors per axis."""
        outside = frozenset(block for block in self.temporal if block < boundary)
        result: list[Expr] = []
        for axis in tensor.axes:
            walked = self.window(axis, boundary, lambda _dim: sorted(outside | spread.blocks(True)))
            if axis.is_compound:  # tiles overlap, so the walk may count elements twice
                full = axis.extent(self.operator.bounds)
                walked = walked + full - maximum([walked, full])
            result.append(walked)
        return result

    def iterations(self, tensor: Tensor, spread: Spread) -> Expr:
        """Accesses of PEs to a tensor over the whole run, over the instances that count.

        A PE holds one element of every tensor, and fetches it at every iteration.
        """
        outside = frozenset(self.temporal)
        moving = dict.fromkeys(self.operator.bounds, outside)
        return self._elements(tensor, len(self.blocks), spread, moving, None)

    def steps(self) -> Expr:
        """Iterations that the busiest PE executes one after the other."""
        return product(self.pieces(dim, len(self.blocks), self.temporal) for dim in self.operator.bounds)

    def _walk(
        self,
        tensor: Tensor,
        boundary: int,
        leaf: Callable[[int | None, str | None, MappingABC[str, frozenset[int]]], Expr],
        slides: bool,
    ) -> Expr:
        """Follow a tensor's leading run outwards; ``leaf`` gets the temporal blocks that count."""
        cases, ends = self._cases(tensor, boundary, slides)
        made = [leaf(*case) for case in cases]
        run = made[0]
        for selector, still, places in ends:
            run = where(still, run, choose(selector, [made[place] for place in places]))
        return run

    def _cases(self, tensor: Tensor, boundary: int, slides: bool) -> _Runs:
        """Where a tensor's leading run may end outside a boundary.

        Returns
        -------
        Different ends (a block, the dimension that slides, the blocks that count by dimension), first that of
        runs which nothing ends; and for every block that may move something, from the innermost outwards, its
        choice of orders, whether it is still, and the end of each order
        """
        known = self._runs.get((tensor.name, boundary, slides))
        if known is not None:
            return known
        outside = [block for block in reversed(self.temporal) if block < boundary]
        beyond = [frozenset(outside[first:]) for first in range(len(outside) + 1)]
        own = [dim for dim in self.operator.bounds if dim in tensor.dims]

        def moving(first: int, still: Collection[str] = ()) -> dict[str, frozenset[int]]:
            """Blocks that count, if those of other dimensions do from a place on, or from the next one."""
            return {dim: beyond[0 if dim in own else first + (dim in still)] for dim in self.operator.bounds}

        # The trips of still blocks are all one; counting them ties a tile size to its bound.
        cases: list[_End] = [(None, None, moving(len(outside)))]
        ends: list[tuple[Variable | int, Expr, list[int]]] = []
        for position, block in reversed([*enumerate(outside)]):
            still = is_one(product(self.trips([block], own)))
            if still is _ALWAYS:
                continue
            places: dict[Hashable, int] = {}
            chosen: list[int] = []
            for order in self.blocks[block].orders:
                slide = order.slides[tensor.name] if slides else None
                effect = slide, order.reused[tensor.name]
                if effect not in places:
                    places[effect] = len(cases)
                    cases.append((block, slide, moving(position, order.reused[tensor.name])))
                chosen.append(places[effect])
            ends.append((self.blocks[block].selector, still, chosen))
        runs = self._runs[tensor.name, boundary, slides] = (cases, ends)
        return runs
