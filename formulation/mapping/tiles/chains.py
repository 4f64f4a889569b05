"""Tile chains: every way to cut one dimension into nested tiles, and axis groups that are cut together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain

import numpy as np

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.limits import TablesTooLargeError
from tilewright.foundation.arrays import Int64s, distinct
from tilewright.workloads.mapping.operator import Operator

Sizes = Mapping[Variable, Collection[int]]
"""Tile sizes that are wanted, where not all are."""


Check = Callable[[], None]
"""Called between steps of some tens of milliseconds."""


def no_check() -> None:
    """Where nobody waits."""


@dataclass(frozen=True)
class AxisGroup:
    """Dimensions that share a tensor axis, with every legal joint choice of their tile sizes.

    Dimensions of different groups meet only in products, so a group's choices can be tabulated.

    Parameters
    ----------
    name : the dimensions joined by ``+``
    variables : tile sizes, in the columns of ``rows``
    tabulate : makes the rows; calls what it is given between steps of some tens of milliseconds
    most : rows at most that it makes on its way
    narrowed : makes the group of those choices that have some sizes only, or more where that gains nothing
    """

    name: str
    dims: tuple[str, ...]
    variables: tuple[Variable, ...]
    tabulate: Callable[[Check], Int64s]
    most: int
    narrowed: Callable[[Sizes], AxisGroup] | None = None

    @cached_property
    def rows(self) -> Int64s:
        """One legal choice per row, shape (choices, variables), made when they are first read.

        Tile sizes have 64 bits, or 32 where there are very many.

        Raises `TablesTooLargeError` where they would not fit into memory.
        """
        return self._made(no_check)

    def make(self, check: Check) -> None:
        """Make the rows if there are none yet; what the check raises goes through.

        Parameters
        ----------
        check : called between steps of some tens of milliseconds
        """
        if "rows" not in self.__dict__:
            self.__dict__["rows"] = self._made(check)

    def _made(self, check: Check) -> Int64s:
        if self.most * max(1, len(self.variables)) > MOST_TILES:
            raise TablesTooLargeError(
                f"the tiles of {self.name} are too many for memory: up to {self.most:,}"
            )
        return self.tabulate(check)

    def having(self, rows: Int64s) -> AxisGroup:
        """The same dimensions with other choices."""
        return AxisGroup(self.name, self.dims, self.variables, lambda _check: rows, len(rows))

    def sizes(self, tile: Expr) -> Int64s:
        """A tile size, decided or fixed, in every row, shape (choices,)."""
        if isinstance(tile, Variable):
            return self.rows[:, self.variables.index(tile)]
        assert isinstance(tile, Constant)
        return np.broadcast_to(np.int64(tile.value), (len(self),))

    @property
    def size_at_most(self) -> int:
        """How many rows there are, or may be where they are not tabulated because they are many."""
        return self.most if self.most > MANY_ROWS and "rows" not in self.__dict__ else len(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


MOST_TILES = 30_000_000
"""Tile sizes in a table: 240 MB; a search that reads them takes 1.3 to 1.5 GB."""
VERY_MANY_ROWS = 1_000_000
"""Rows that have 32 bits for each tile size, where these suffice."""
MANY_ROWS = 200_000
"""Rows that are not tabulated in order to be counted: tiles that never fit are left out before they are."""


def axis_group_dims(operator: Operator) -> list[tuple[str, ...]]:
    """Dimensions with more than one iteration, joined where they move along one tensor axis."""
    parent = {dim: dim for dim in operator.bounds}

    def root(dim: str) -> str:
        while parent[dim] != dim:
            dim = parent[dim]
        return dim

    for tensor in operator.tensors:
        for axis in tensor.axes:
            dims = [term.dim for term in axis.terms if operator.bounds[term.dim] > 1]
            # Union-find: dimensions that any tensor moves along one axis end up in one group.
            for other in dims[1:]:
                parent[root(other)] = root(dims[0])
    groups: dict[str, list[str]] = {}
    for dim, bound in operator.bounds.items():
        if bound > 1:
            groups.setdefault(root(dim), []).append(dim)
    return [tuple(dims) for dims in groups.values()]


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, increasing."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(dict.fromkeys([*small, *(number // d for d in reversed(small))]))


@lru_cache(maxsize=4096)
def balanced_tiles(size: int) -> tuple[int, ...]:
    """The smallest tile for every trip count: ``ceil(size / n)``, increasing."""
    # A tile or its trips are small; a dimension of billions has some ten thousand of each.
    small = np.arange(1, math.isqrt(size) + 2)
    tiles = small[-(-size // -(-size // small)) == small]
    return tuple(distinct(np.concatenate([tiles, -(-size // small)])).tolist())


Among = tuple[frozenset[int], ...]
"""The sizes that the tile of every step may have."""


@lru_cache(maxsize=128)
def perfect_chains(
    bound: int, length: int, most: tuple[int, ...] = (), among: Among = (), check: Check = no_check
) -> Int64s:
    """All sequences of ``length`` tile sizes, each dividing the one before it, the first the bound.

    Parameters
    ----------
    bound, length : of the outermost tile, and how many there are
    most : trips at most of every step, 0 for any number; none by default
    among : of every step, the sizes that its tile may have; any by default
    check : may end the call

    Returns an array of shape (chains, length).
    """
    return _chains(bound, length, divisors, most, among, check)


@lru_cache(maxsize=128)
def balanced_chains(
    bound: int, length: int, most: tuple[int, ...] = (), among: Among = (), check: Check = no_check
) -> Int64s:
    """All sequences of ``length`` tile sizes, each ``ceil(outer / n)`` of the one before it for some ``n``.

    Divisor chains are among them.  Returns an array of shape (chains, length).

    Parameters
    ----------
    bound, length, most, among, check : as for `perfect_chains`
    """
    return _chains(bound, length, balanced_tiles, most, among, check)


@lru_cache(maxsize=1024)
def ranged_chains(least: int, most: int) -> Callable[[int, int], Int64s]:
    """Chains of a dimension that stands for all bounds between two, cut off at the least.

    A chain of a bound ``b`` cut off at ``least`` has ``min(tile, least)`` for every tile.  As ``b`` is at
    most ``2 * least``, only the whole is cut off, so what may stand inside the whole are the tiles of all
    bounds, and inside a smaller tile its own.
    """
    own = distinct(np.concatenate([balanced_tiles(bound) for bound in range(least, most + 1)]))
    whole = tuple(distinct(np.minimum(own, least)).tolist())

    @lru_cache(maxsize=128)
    def chains(bound: int, length: int, check: Check = no_check) -> Int64s:
        return _chains(
            bound, length, lambda size: whole if size == least else balanced_tiles(size), check=check
        )

    return chains


@lru_cache(maxsize=128)
def halved_chains(
    bound: int, length: int, most: tuple[int, ...] = (), among: Among = (), check: Check = no_check
) -> Int64s:
    """All sequences of ``length`` tile sizes, each the one before it halved, rounded up, any number of times,
    or cut into as many parts as some step has trips at most: so axes of any length are filled.

    Some ten thousand even of dimensions with tens of thousands of iterations.  Shape (chains, length).

    Parameters
    ----------
    bound, length, most, among, check : as for `perfect_chains`
    """
    axes = {trips for trips in most if trips}

    def tiles(size: int) -> list[int]:
        counts = axes | {2**power for power in range((size - 1).bit_length() + 1)}
        return sorted({-(-size // count) for count in counts})

    return _chains(bound, length, tiles, most, among, check)


@dataclass(frozen=True)
class SparseChains:
    """Makes chains of few sizes: those of `balanced_chains` in which tiles have some sizes only.

    The least and the largest size are among them.

    Parameters
    ----------
    octave : sizes while a tile doubles, where there are so many
    """

    octave: float

    def __call__(
        self, bound: int, length: int, most: tuple[int, ...] = (), among: Among = (), check: Check = no_check
    ) -> Int64s:
        """Chains; parameters and shape as for `perfect_chains`."""
        return _chains(bound, length, self.menu(bound), most, among, check)

    def menu(self, bound: int) -> Callable[[int], Sequence[int]]:
        """Of a dimension: what may stand inside a tile of some size, increasing."""
        kept = [1]
        for size in balanced_tiles(bound):
            if size >= max(kept[-1] + 1, kept[-1] * 2 ** (1 / self.octave)):
                kept.append(size)
        among = {*kept, bound}
        return cache(lambda size: [tile for tile in balanced_tiles(size) if tile in among])


@lru_cache(maxsize=128)
def every_chain(
    bound: int, length: int, most: tuple[int, ...] = (), among: Among = (), check: Check = no_check
) -> Int64s:
    """All non-increasing sequences of ``length`` tile sizes up to the bound.

    Parameters
    ----------
    bound, length, most, among, check : as for `perfect_chains`, as is the shape
    """
    return _chains(bound, length, lambda size: range(1, size + 1), most, among, check)


def listed(chains: Callable[..., Int64s], count: int, check: Check, *arguments: object) -> Int64s:
    """What makes chains called; many are made anew, under a check, and kept for no other problem.

    Parameters
    ----------
    count : of the chains, at most
    arguments : bound, length and so on
    """
    if count <= MANY_ROWS:
        return chains(*arguments)
    return getattr(chains, "__wrapped__", chains)(*arguments, check=check)


def count_chains(
    bound: int,
    length: int,
    steps: Callable[[int, int], Int64s],
    most: tuple[int, ...] = (),
    among: Among = (),
) -> int:
    """How many sequences of ``length`` tile sizes there are, without listing them.

    Parameters
    ----------
    bound, length : of the outermost tile, and how many there are
    steps : makes the sequences; those of one tile are all that may stand inside a tile
    most : trips at most of every step, 0 for any number
    among : of every step, the sizes that its tile may have
    """
    sizes, inside, starts = _nested(bound, steps)
    # In Python's integers where 64 bits may not suffice.
    kind = np.int64 if len(sizes) ** length < 1 << 62 else np.object_
    counts = np.ones(len(sizes), dtype=kind)  # of the sequences inside a tile of each size
    outer = np.repeat(sizes, np.diff(starts, append=len(inside)))
    for step, trips in reversed([*enumerate(most or (0,) * length)]):
        if among:
            counts = np.where(np.isin(sizes, [*among[step]]), counts, 0)
        inner = counts[inside]
        if trips:
            inner = np.where(trips * sizes[inside] >= outer, inner, 0)
        counts = np.add.reduceat(inner, starts)
    return int(counts[-1])


@lru_cache(maxsize=32)
def _nested(bound: int, steps: Callable[[int, int], Int64s]) -> tuple[Int64s, Int64s, Int64s]:
    """The sizes of tiles inside a bound, increasing, and the places of those that may stand inside each.

    Parameters
    ----------
    bound : of the outermost tile
    steps : makes sequences; those of one tile are all that may stand inside a tile

    Returns
    -------
    The sizes, places of all that may stand inside the first of them, the second and so on, and where the
    places of each size begin
    """
    # Tiles of tiles are tiles of the whole, so these are all sizes that there are.
    menu: Callable[[int], Sequence[int] | Int64s]
    if isinstance(steps, SparseChains):
        menu = steps.menu(bound)
    else:
        menu = balanced_tiles if steps is balanced_chains else lambda size: distinct(steps(size, 1)[:, 0])
    sizes = np.asarray(menu(bound), dtype=np.int64)
    inside = [np.searchsorted(sizes, menu(size)) for size in sizes.tolist()]
    starts = np.cumsum([0, *map(len, inside[:-1])])
    return sizes, np.concatenate(inside), starts


def _chains(
    bound: int,
    length: int,
    tiles: Callable[[int], Sequence[int]],
    most: tuple[int, ...] = (),
    among: Among = (),
    check: Check = no_check,
) -> Int64s:
    """All sequences of tile sizes inside the bound, in increasing order of the first, then the next.

    Parameters
    ----------
    bound, length : of the outermost tile, and how many there are
    tiles : increasing, what may stand inside a tile of some size
    most : trips at most of every step, 0 for any number
    among : of every step, the sizes that its tile may have
    check : called between arrays of all that is made so far
    """
    kind = np.int32 if bound < 2**31 else np.int64  # many chains are made of small numbers
    last = np.array([bound], dtype=kind)
    columns: list[Int64s] = []
    most = most or (0,) * length
    continued = _continued(tiles, most, among)
    for step, trips in enumerate(most):
        sizes, which = np.unique(last, return_inverse=True)
        menus = [_inside(size, tiles, trips) for size in sizes.tolist()]
        if among:
            menus = [[size for size in menu if size in continued[step]] for menu in menus]
        counts = np.array([len(menu) for menu in menus], dtype=np.int64)
        firsts = np.cumsum(counts) - counts  # of each menu in all of them
        children = counts[which]
        check()
        parent = np.repeat(np.arange(len(last)), children)
        # The place of every child among its siblings, then in the menu of its parent's size.
        place = np.arange(len(parent)) - np.repeat(np.cumsum(children) - children, children)
        inside: Int64s = np.fromiter(chain.from_iterable(menus), kind, int(counts.sum()))
        place += firsts[which][parent]
        check()
        last = inside[place]
        del place
        for outside, column in enumerate(columns):
            check()
            columns[outside] = column[parent]
        columns.append(last)
    # Products of tile sizes may need 64 bits; who multiplies those of very many rows has to widen them.
    rows = np.empty((len(last), length), dtype=kind if len(last) > VERY_MANY_ROWS else np.int64)
    for step in reversed(range(length)):
        check()
        rows[:, step] = columns.pop()
    return _shared(rows)


def _continued(tiles: Callable[[int], Sequence[int]], most: tuple[int, ...], among: Among) -> list[set[int]]:
    """Of every step, the sizes from which a sequence goes on to its end."""
    result: list[set[int]] = []
    for step in reversed(range(len(among))):
        own = set(among[step])
        if result:
            own = {size for size in own if not result[-1].isdisjoint(_inside(size, tiles, most[step + 1]))}
        result.append(own)
    return result[::-1]


def _inside(size: int, tiles: Callable[[int], Sequence[int]], trips: int) -> Sequence[int]:
    """What may stand inside a tile and takes so many trips at most, 0 for any number."""
    menu = tiles(size)
    return menu[bisect_left(menu, -(-size // trips)) :] if trips else menu  # few trips are at the end


def _shared(rows: Int64s) -> Int64s:
    """Chains are cached for every problem of the process: nobody may write into them."""
    rows.setflags(write=False)
    return rows


def cross(tables: Sequence[Int64s]) -> Int64s:
    """Every combination of one row of each table, side by side."""
    result = tables[0]
    for table in tables[1:]:
        left = np.repeat(result, len(table), axis=0)
        right = np.tile(table, (len(result), 1))
        result = np.concatenate([left, right], axis=1)
    return result
