"""A loop nest on an engine, with tile sizes and orders that may be decided or still open.

The nest is a list of blocks, outermost first.  A temporal block holds the loops of one memory level, a
spatial block the loops spread over one array axis.  Between blocks stand boundaries: the tile size of
every dimension at that point.  Cost models read a nest without knowing whether its tile sizes are numbers
(one mapping, evaluated) or variables (the whole map space, searched).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from tilewright.formulation.expression import (
    Expr,
    Variable,
    as_expr,
    ceil_div,
    choose,
    function,
    is_one,
    maximum,
    product,
    total,
    where,
)
from tilewright.formulation.mapping import piece_arrays, pieces, window_arrays, windows
from tilewright.formulation.mapping.orders import OrderClass
from tilewright.hardware.mapping.engine import ArrayAxis, Engine
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor

_MEASURES = {
    "pieces": (pieces.number, piece_arrays.number),
    "covered": (pieces.covered, piece_arrays.covered),
}


@dataclass(frozen=True, slots=True)
class Block:
    """The loops between two boundaries.

    Parameters
    ----------
    level : index of the memory level whose tiles the loops walk through, or whose fan-out they fill
    axis : the array axis of a spatial block; ``None`` for a temporal one
    orders : the effects that the loop order may have; one for a spatial block or a fixed order
    selector : the variable that chooses among them, or the index of the chosen one
    """

    level: int
    axis: ArrayAxis | None
    orders: tuple[OrderClass, ...] = ()
    selector: Variable | int = 0

    @property
    def is_temporal(self) -> bool:
        return self.axis is None


@dataclass(frozen=True, slots=True)
class Residency:
    """Where one tensor may live.

    Parameters
    ----------
    positions : per memory level index, the boundary at which a tile of the tensor is stored there
    alternatives : the sets of levels (outermost first) that a mapping may choose to store it at
    selector : the variable that chooses among them, or the index of the chosen one
    """

    positions: MappingABC[int, int]
    alternatives: tuple[tuple[int, ...], ...]
    selector: Variable | int = 0


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


@dataclass(frozen=True)
class Nest:
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
        found = self._trips.get((block, dim))
        if found is None:
            found = ceil_div(self.boundaries[block][dim], self.boundaries[block + 1][dim])
            self._trips[block, dim] = found
        return found

    def trips(self, blocks: Iterable[int], dims: Iterable[str] | None = None) -> list[Expr]:
        """The trip counts of several loops, to be multiplied."""
        names = list(self.operator.bounds if dims is None else dims)
        return [self.trip(block, dim) for block in blocks for dim in names]

    def extent(self, axis: Axis, boundary: int) -> Expr:
        """Elements that a tile at a boundary spans along a tensor axis."""
        tile = self.boundaries[boundary]
        offset = 1 - sum(term.stride for term in axis.terms)
        return total([offset, *(term.stride * tile[term.dim] for term in axis.terms)])

    def extents(self, tensor: Tensor, boundary: int) -> list[Expr]:
        """A tile's extents along every axis, to be multiplied."""
        return [self.extent(axis, boundary) for axis in tensor.axes]

    def footprint(self, tensor: Tensor, boundary: int) -> Expr:
        """Elements of a tensor's tile at a boundary."""
        return product(self.extents(tensor, boundary))

    @cached_property
    def _trips(self) -> dict[tuple[int, str], Expr]:
        """What :meth:`trip` has built; statements ask for the same ones very often."""
        return {}

    @cached_property
    def _measures(self) -> dict[tuple[str, str, int, tuple[int, ...]], Expr]:
        """What :meth:`pieces` and :meth:`covered` have built."""
        return {}

    @cached_property
    def _tiles(self) -> dict[Hashable, Expr]:
        """What :meth:`delivered` has built for one set of moving loops."""
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

    def pieces(self, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """How many pieces a dimension is cut into at a boundary, counting the cuts of some blocks only.

        Of a block that is not counted the first piece stands for all: it is the largest.
        """
        return self._measure("pieces", dim, boundary, counted)

    def covered(self, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """Iterations in all those pieces together."""
        return self._measure("covered", dim, boundary, counted)

    def _measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        """A measure of a dimension's pieces; statements ask for the same ones very often."""
        key = measure, dim, boundary, tuple(counted)
        found = self._measures.get(key)
        if found is None:
            made = self._perfect_measure if self.perfect else self._imperfect_measure
            found = self._measures[key] = made(*key)
        return found

    def _perfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        number = product(self.trips([block for block in counted if block < boundary], [dim]))
        return number if measure == "pieces" else product([self.boundaries[boundary][dim], number])

    def _imperfect_measure(self, measure: str, dim: str, boundary: int, counted: Collection[int]) -> Expr:
        sizes, kinds = self._chain(dim, boundary, lambda block: "+" if block in counted else "-")
        flags = tuple(kind == "+" for kind in kinds)
        one, many = _MEASURES[measure]
        return function(
            f"{measure}{kinds}",
            lambda *s: one(pieces.cut(s, flags)),
            sizes,
            lambda *s: many(piece_arrays.cut(s, flags)),
        )

    def _chain(self, dim: str, last: int, kind: Callable[[int], str]) -> tuple[tuple[Expr, ...], str]:
        """Tile sizes down to a boundary, without cuts that are none, and the kind of every cut.

        Of a cut of kind ``-`` only the first piece counts.
        """
        sizes = [self.boundaries[0][dim]]
        kinds = ""
        for block in range(last):
            inner = self.boundaries[block + 1][dim]
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

        return function(
            f"fetched{lengths}{shape}{strides}",
            lambda *v: windows.fetched(chains(v), shape, strides),
            flat,
            lambda *v: window_arrays.fetched(chains(v), shape, strides),
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
                    tile = self.boundaries[run[-1] + 1][term.dim]
                    values += [product(self.trips(run, [term.dim])), term.stride * tile]
            progressions = tuple(shape)
            factors.append(
                function(
                    f"distinct{progressions}",
                    lambda *v: windows.distinct(progressions, v),
                    values,
                    lambda *v: window_arrays.distinct(progressions, v),
                )
            )
        for term in axis.terms:
            left = [n for n in counted(term.dim) if n < boundary and n not in sides]
            factors += self.trips([n for n in left if (term.dim, n) != slide], [term.dim])
        return product(factors)

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

        def leaf(block: int | None, slide: str | None, moving: MappingABC[str, frozenset[int]]) -> Expr:
            sliding = None if slide is None or block is None else (slide, block)
            key = tensor.name, boundary, spread, tuple(moving.values()), sliding
            found = self._tiles.get(key)
            if found is None:
                found = self._tiles[key] = self._elements(tensor, boundary, spread, moving, sliding)
            return found if times is None else product([found, times])

        return self._walk(tensor, boundary, leaf, slides)

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

        def counted(dim: str) -> list[int]:
            """Blocks whose cuts count; a loop on two axes (a diagonal) moves the tile once."""
            return [] if dim in met else sorted(moving[dim] | spread.blocks(dim in tensor.dims))

        sides = sorted(block for block in spread.shared if block < boundary)
        factors: list[Expr] = []
        for axis in tensor.axes:
            dims = {term.dim for term in axis.terms}
            elsewhere = {term.dim for other in tensor.axes if other is not axis for term in other.terms}
            sliding = slide if slide is not None and slide[0] in dims - elsewhere else None
            alike = [] if dims & elsewhere else sides
            factors.append(self.window(axis, boundary, counted, alike, sliding))
            met |= dims
        others = [dim for dim in self.operator.bounds if dim not in tensor.dims]
        return product([*factors, *(self.pieces(dim, boundary, counted(dim)) for dim in others)])

    def visits(self, tensor: Tensor, boundary: int, spread: Spread, leaf: Callable[[Expr], Expr]) -> Expr:
        """How often one element's tile comes and goes at a boundary, passed through ``leaf``.

        The pieces of the loops that the tensor does not depend on and that move: every element of an
        output is written back that many times.
        """

        def end(_block: int | None, _slide: str | None, moving: MappingABC[str, frozenset[int]]) -> Expr:
            return leaf(product(self._other_pieces(tensor, boundary, spread, moving)))

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
        outside = [block for block in reversed(self.temporal) if block < boundary]
        own = [dim for dim in self.operator.bounds if dim in tensor.dims]

        def stopped(position: int, order: OrderClass) -> Expr:
            """The leading run ends inside this block."""
            block = outside[position]
            slide = order.slides[tensor.name] if slides else None
            moving = {}
            for dim in self.operator.bounds:
                stays = dim in order.reused[tensor.name]
                first = 0 if dim in own else position + 1 if stays else position
                moving[dim] = frozenset(outside[first:])
            return leaf(block, slide, moving)

        def walk(position: int) -> Expr:
            """Nothing that the tensor depends on has moved in the blocks before ``position``."""
            if position == len(outside):
                # the trips of still blocks are all one; counting them ties a tile size to its bound
                return leaf(
                    None, None, {d: frozenset(outside if d in own else ()) for d in self.operator.bounds}
                )
            block = outside[position]
            still = is_one(product(self.trips([block], own)))
            ended = choose(
                self.blocks[block].selector, [stopped(position, order) for order in self.blocks[block].orders]
            )
            return where(still, walk(position + 1), ended)

        return walk(0)


def _runs(blocks: Collection[int]) -> list[list[int]]:
    """Blocks that follow each other, together."""
    runs: list[list[int]] = []
    for block in sorted(blocks):
        if runs and runs[-1][-1] == block - 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def loop_hosts(operator: Operator, engine: Engine) -> tuple[int, ...]:
    """Per level, the one that its temporal loops count as.

    That is the nearest one outside, itself included, that can store a tensor of the operator.
    """
    roles = {tensor.role for tensor in operator.tensors}
    hosts: list[int] = []
    for index, level in enumerate(engine.levels):
        hosts.append(index if roles & level.keeps or not hosts else hosts[-1])
    return tuple(hosts)


def whole(operator: Operator) -> dict[str, Expr]:
    """The outermost boundary: every dimension at its bound."""
    return {dim: as_expr(bound) for dim, bound in operator.bounds.items()}
