"""A loop nest on an engine, with tile sizes and orders that may be decided or still open.

The nest is a list of blocks, outermost first.  A temporal block holds the loops of one memory level, a
spatial block the loops spread over one array axis.  Between blocks stand boundaries: the tile size of
every dimension at that point.  Cost models read a nest without knowing whether its tile sizes are numbers
(one mapping, evaluated) or variables (the whole map space, searched).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

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
from tilewright.formulation.orders import OrderClass
from tilewright.hardware.engine import ArrayAxis, Engine
from tilewright.workloads.operator import Axis, Operator, Tensor


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

    positions: Mapping[int, int]
    alternatives: tuple[tuple[int, ...], ...]
    selector: Variable | int = 0


@dataclass(frozen=True)
class Nest:
    """Blocks, boundaries and residencies of one operator on one engine.

    Parameters
    ----------
    boundaries : ``len(blocks) + 1`` tile sizes per dimension; the first is the whole operator, the last is
        one iteration
    blocks : outermost first
    residency : per tensor name
    """

    operator: Operator
    engine: Engine
    boundaries: tuple[Mapping[str, Expr], ...]
    blocks: tuple[Block, ...]
    residency: Mapping[str, Residency]

    def trip(self, block: int, dim: str) -> Expr:
        """Iterations of a dimension's loop in a block."""
        return ceil_div(self.boundaries[block][dim], self.boundaries[block + 1][dim])

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

    def instances(self, boundary: int) -> Expr:
        """Active instances of whatever stands at a boundary."""
        return product(self.trips(self.spatial_between(0, boundary)))

    def cap(self, blocks: Iterable[int]) -> int:
        """How many instances the arrays of these spatial blocks have."""
        result = 1
        for index in blocks:
            axis = self.blocks[index].axis
            assert axis is not None
            result *= axis.size
        return result

    def distinct(self, tensor: Tensor, blocks: Sequence[int]) -> list[Expr]:
        """Different tiles of a tensor among the instances that spatial blocks span, to be multiplied.

        Instances that need the very same tile share one access (multicast; for the output, spatial
        reduction).  Along an axis of two loops the tiles at ``i * a + j * b`` coincide for
        different ``(i, j)``; more than two loops on one axis are counted without coincidences.
        """
        factors: list[Expr] = []
        for level in sorted({self.blocks[index].level for index in blocks}):
            fan = [index for index in blocks if self.blocks[index].level == level]
            first, last = fan[0], fan[-1] + 1
            for axis in tensor.axes:
                count = {t.dim: product(self.trips(fan, [t.dim])) for t in axis.terms}
                if len(axis.terms) == 2:
                    a, b = axis.terms
                    steps = [t.stride * self.boundaries[last][t.dim] for t in (a, b)]
                    factors.append(
                        function("distinct", distinct_sums, [count[a.dim], steps[0], count[b.dim], steps[1]])
                    )
                else:
                    factors.extend(count.values())
            assert last - first == len(fan)
        return factors

    def delivered(
        self, tensor: Tensor, boundary: int, extra: Sequence[Expr] = (), slides: bool = False
    ) -> Expr:
        """Elements that one instance at a boundary receives over the whole run.

        A tile is fetched again whenever a loop that the tensor depends on advances outside the boundary;
        loops of the leading run, continued through consecutive blocks in which nothing else moves, reuse
        it.  Where the first loop that moves it slides a window, only the new part is fetched.

        Parameters
        ----------
        boundary : where the tile is stored
        extra : factors to multiply the result by, such as the number of instances; inside, so that they
            meet the tile sizes of their own axis group
        slides : whether the store keeps the overlap of consecutive tiles
        """

        def fetched(block: int | None, slide: str | None, rest: list[Expr]) -> Expr:
            if block is None or slide is None or not slides:
                moved = self.extents(tensor, boundary)
            else:
                moved = self._slid(tensor, boundary, block, slide)
            return product([*extra, *moved, *rest])

        return self._walk(tensor, boundary, [*self.operator.bounds], fetched, slides)

    def fetches(self, tensor: Tensor, boundary: int, payload: Sequence[Expr]) -> Expr:
        """``payload`` times the number of fetches of a tensor's tile at a boundary."""
        return self._walk(
            tensor, boundary, [*self.operator.bounds], lambda _b, _s, rest: product([*payload, *rest]), False
        )

    def visits(self, tensor: Tensor, boundary: int, leaf: Callable[[Expr], Expr]) -> Expr:
        """How often one element's tile comes and goes at a boundary, passed through ``leaf``.

        The fetches that are due to loops that the tensor does not depend on: every element of an output is
        written back that many times.
        """
        dims = [dim for dim in self.operator.bounds if dim not in tensor.dims]
        return self._walk(tensor, boundary, dims, lambda _b, _s, rest: leaf(product(rest)), False)

    def _walk(
        self,
        tensor: Tensor,
        boundary: int,
        counted: Sequence[str],
        leaf: Callable[[int | None, str | None, list[Expr]], Expr],
        slides: bool,
    ) -> Expr:
        """Follow a tensor's leading run outwards; ``leaf`` gets the trip counts of ``counted`` loops."""
        outside = [block for block in reversed(self.temporal) if block < boundary]
        own = [dim for dim in self.operator.bounds if dim in tensor.dims]
        own_counted = [dim for dim in own if dim in counted]

        def stopped(position: int, order: OrderClass, passed: list[Expr]) -> Expr:
            """The leading run ends inside this block."""
            block = outside[position]
            slide = order.slides[tensor.name] if slides else None
            stay = order.reused[tensor.name] | ({slide} if slide else set())
            moving = self.trips([block], [dim for dim in counted if dim not in stay])
            rest = self.trips(outside[position + 1 :], counted)
            return leaf(block, slide, [*passed, *moving, *rest])

        def walk(position: int, passed: list[Expr]) -> Expr:
            """Nothing that the tensor depends on has moved in the blocks before ``position``."""
            if position == len(outside):
                return leaf(None, None, passed)
            block = outside[position]
            still = is_one(product(self.trips([block], own)))
            ended = choose(
                self.blocks[block].selector,
                [stopped(position, order, passed) for order in self.blocks[block].orders],
            )
            # the trips of a still block are all one; keeping them ties the tile size to its bound
            return where(still, walk(position + 1, [*passed, *self.trips([block], own_counted)]), ended)

        return walk(0, [])

    def _slid(self, tensor: Tensor, boundary: int, block: int, dim: str) -> list[Expr]:
        """Extents of all that a window touches while one loop slides it, each element fetched once."""
        sizes: list[Expr] = []
        for axis in tensor.axes:
            extent = self.extent(axis, boundary)
            for term in axis.terms:
                if term.dim == dim:
                    step = term.stride * self.boundaries[block + 1][dim]
                    new = extent + step - maximum([extent, step])
                    extent = extent + product([self.trip(block, dim) - 1, new])
            sizes.append(extent)
        return sizes


def distinct_sums(m: int, a: int, n: int, b: int) -> int:
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``."""
    common = gcd(a, b)
    return m * n - max(0, m - b // common) * max(0, n - a // common)


def whole(operator: Operator) -> dict[str, Expr]:
    """The outermost boundary: every dimension at its bound."""
    return {dim: as_expr(bound) for dim, bound in operator.bounds.items()}
