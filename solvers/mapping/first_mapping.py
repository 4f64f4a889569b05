"""A mapping of a layer within a moment: what a search has to show that ended before it found any.

Mappings grow from single elements in every store inside the outermost level, for which hardly any store is
too small, along random paths: first the loops that fill an array, then those of inner stores.  All mappings
along all paths are costed at once by the problem's own expressions, which takes about as long as three
evaluations of single ones; the best of them then moves factors from loop to loop as long as that helps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.foundation.arrays import Floats, Int64s

SOURCE = "greedy"
_PATHS = 16
_STEPS = 12  # moves of the best mapping, some ten milliseconds each
_JUDGED = 4  # mappings at most that are evaluated before one is legal: demands may exclude what costs least


def offer_one_mapping(search: LayerSearch) -> None:
    """Offer a mapping where nothing is known, within an evaluation or two.

    Arrays are full, or else hold single elements, as all inner stores do; demands may exclude both.
    """
    growth = _Growth(search.problem)
    for point in (growth.spread(), growth.alone()):
        if search.key is None:
            search.offer(growth.mapping(point), SOURCE, Origin.HEURISTIC)


def offer_any_mapping(
    search: LayerSearch, over: Callable[[], bool] = lambda: False, steps: int = _STEPS
) -> None:
    """Offer a mapping where nothing is known.

    Parameters
    ----------
    over : asked between steps whether to end; something is offered in any case
    steps : moves of the best mapping at most
    """
    if search.key is not None:
        return
    growth = _Growth(search.problem)
    points = growth.paths(random.Random(0))
    keys = growth.keys(points)
    for place in [*np.argsort(keys, kind="stable")[:_JUDGED].tolist(), 0]:
        if search.offer(growth.mapping(points[place]), SOURCE, Origin.HEURISTIC) is not None:
            break
    first = best = points[place]
    key = float(keys[place])
    for _ in range(steps):
        if over() or search.key is None:
            break
        points = [best, *growth.moves(best)]
        keys = growth.keys(points)
        place = int(np.argmin(keys))
        if keys[place] >= key:
            break
        best, key = points[place], float(keys[place])
    if best != first:
        search.offer(growth.mapping(best), SOURCE, Origin.HEURISTIC)


@dataclass(frozen=True, slots=True)
class _Point:
    """A mapping.

    Parameters
    ----------
    trips : per dimension, of its loops from the second one inwards; the outermost one has all others
    choices : of selectors
    """

    trips: tuple[tuple[int, ...], ...]
    choices: tuple[int, ...]


class _Growth:
    """The points of a problem's space, by the trips of loops."""

    def __init__(self, problem: LayerProblem) -> None:
        self._problem = problem
        nest = problem.space.nest
        self._perfect = nest.perfect
        self._selectors = problem.space.selectors
        self._dims = [dim for dim, bound in problem.operator.bounds.items() if bound > 1]
        self._bounds = [problem.operator.bounds[dim] for dim in self._dims]
        # Per dimension, the block of each of its loops and the tile inside it; the last one leaves nothing.
        self._loops: list[list[tuple[int, Variable | None]]] = []
        for dim in self._dims:
            own: list[tuple[int, Variable | None]] = []
            for index in range(len(nest.blocks)):
                outer, inner = nest.boundaries[index][dim], nest.boundaries[index + 1][dim]
                if not isinstance(inner, Variable):
                    own.append((index, None))
                    break
                if inner is not outer:
                    own.append((index, inner))
            self._loops.append(own)
        self._room = {
            index: block.axis.size for index, block in enumerate(nest.blocks) if block.axis is not None
        }

    def alone(self) -> _Point:
        """Single elements in every store inside the outermost level."""
        trips = tuple((1,) * (len(loops) - 1) for loops in self._loops)
        return _Point(trips, (0,) * len(self._selectors))

    def spread(self) -> _Point:
        """The same on full arrays."""
        alone = self.alone()
        trips = [[*own] for own in alone.trips]
        for step in self._spreading(trips, random.Random(0)):
            self._grow(trips, *step)
        return _Point(tuple(map(tuple, trips)), alone.choices)

    def paths(self, draw: random.Random) -> list[_Point]:
        """Mappings along some paths, single elements first."""
        alone = self.alone()
        points = {alone: None}
        for path in range(_PATHS):
            trips = [[*own] for own in alone.trips]
            # Orders and stores as the space lists them first, or any.
            choices = alone.choices if path % 2 else tuple(draw.choice(s.domain) for s in self._selectors)
            for step in self._steps(trips, draw):
                self._grow(trips, *step)
                points[_Point(tuple(map(tuple, trips)), choices)] = None
        return [*points]

    def _steps(self, trips: list[list[int]], draw: random.Random) -> Iterator[tuple[int, int, int]]:
        """Dimension, loop and factor by which its trips grow, one after the other: arrays, then stores."""
        yield from self._spreading(trips, draw)
        yield from self._storing(trips, draw)

    def _spreading(self, trips: list[list[int]], draw: random.Random) -> Iterator[tuple[int, int, int]]:
        axes = [*self._room]
        draw.shuffle(axes)
        for axis in axes:
            room = self._room[axis]
            for dim, loop in self._loops_at({axis}, draw):
                trips_there = self._filling(self._left(trips, dim), room)
                if trips_there > 1:
                    room //= trips_there
                    yield dim, loop, trips_there

    def _storing(self, trips: list[list[int]], draw: random.Random) -> Iterator[tuple[int, int, int]]:
        stores = self._loops_at({*self._problem.space.nest.temporal}, draw)
        items = [
            (dim, factor)
            for dim in range(len(self._dims))
            for factor in self._factors(self._left(trips, dim))
            if any(dim == other for other, _ in stores)
        ]
        draw.shuffle(items)
        kind = draw.randrange(3)  # loops at the innermost store, the outermost one, or anywhere
        for dim, factor in items:
            loops = sorted(loop for other, loop in stores if other == dim)
            yield dim, (loops[-1], loops[0], draw.choice(loops))[kind], factor

    def _loops_at(self, blocks: Collection[int], draw: random.Random) -> list[tuple[int, int]]:
        """Dimensions with their loops inside the outermost one in some blocks, in random order."""
        loops = [
            (dim, loop - 1)
            for dim, own in enumerate(self._loops)
            for loop, (block, _) in enumerate(own)
            if loop and block in blocks
        ]
        draw.shuffle(loops)
        return loops

    def _left(self, trips: Sequence[Sequence[int]], dim: int) -> int:
        """Trips of a dimension's outermost loop."""
        inside = 1
        for count in trips[dim]:
            inside *= count
        return -(-self._bounds[dim] // inside)

    def _filling(self, left: int, room: int) -> int:
        """Trips that fill an axis as far as a dimension can."""
        if not self._perfect:
            return -(-left // -(-left // min(room, left)))
        trips = 1
        for factor in reversed(_primes(left)):
            trips *= factor if trips * factor <= room else 1
        return trips

    def _factors(self, left: int) -> list[int]:
        """Factors into which the trips of the outermost loop are cut."""
        return _primes(left) if self._perfect else [2] * (left - 1).bit_length()

    def _grow(self, trips: list[list[int]], dim: int, loop: int, factor: int) -> None:
        if self._left(trips, dim) >= factor:
            trips[dim][loop] *= factor

    def moves(self, point: _Point) -> Iterator[_Point]:
        """Mappings in which a factor stands in another loop, or a choice is another one."""
        for dim, own in enumerate(point.trips):
            left = self._left(point.trips, dim)
            for into in range(-1, len(own)):
                for out in range(-1, len(own)):
                    if into == out:
                        continue
                    for factor in {*self._factors(left if out < 0 else own[out])[:2]}:
                        moved = [*own]
                        if out >= 0:
                            moved[out] = -(-moved[out] // factor)
                        if into >= 0:
                            moved[into] *= factor
                        trips = (*point.trips[:dim], tuple(moved), *point.trips[dim + 1 :])
                        yield _Point(trips, point.choices)
        for place, selector in enumerate(self._selectors):
            for choice in selector.domain:
                if choice != point.choices[place]:
                    choices = (*point.choices[:place], choice, *point.choices[place + 1 :])
                    yield _Point(point.trips, choices)

    def _tiles(self, points: Sequence[_Point]) -> dict[Variable, Int64s]:
        """The tile sizes of some points, outermost first in each dimension."""
        tiles: dict[Variable, Int64s] = {}
        for dim, loops in enumerate(self._loops):
            trips = np.array([point.trips[dim] for point in points], dtype=np.int64).reshape(
                len(points), len(loops) - 1
            )
            bound = np.full(len(points), self._bounds[dim], dtype=np.int64)
            tile = -(-bound // -(-bound // np.prod(trips, axis=1)))
            for loop, (_, variable) in enumerate(loops):
                if loop:
                    tile = -(-tile // trips[:, loop - 1])
                if variable is not None:
                    tiles[variable] = tile
        return tiles

    def keys(self, points: Sequence[_Point]) -> Floats:
        """The objective's scaled key of every point, infinite for those that break a limit."""
        choices = np.array([point.choices for point in points], dtype=np.float64)
        choices = choices.reshape(len(points), len(self._selectors))
        reader = BatchReader(
            {
                **{variable: tile.astype(np.float64) for variable, tile in self._tiles(points).items()},
                **{selector: choices[:, place] for place, selector in enumerate(self._selectors)},
            }
        )
        keys: Floats = np.ones(len(points))
        statement, powers = self._problem.statement, self._problem.objective.key_powers
        for power, root in zip(powers, (statement.energy, statement.cycles), strict=True):
            if power:
                keys = keys * reader.read(root) ** power
        for limit in self._problem.limits:
            keys = np.where(reader.read(limit.expr) > limit.bound, np.inf, keys)
        return keys

    def mapping(self, point: _Point) -> Mapping:
        """The mapping that a point stands for."""
        tiles = {variable: int(tile[0]) for variable, tile in self._tiles([point]).items()}
        chosen = dict(zip(self._selectors, point.choices, strict=True))
        return self._problem.decode({**tiles, **chosen})


def _primes(number: int) -> list[int]:
    """The prime factors of a number, increasing, each as often as it divides it."""
    factors, prime = list[int](), 2
    while prime * prime <= number:
        while number % prime == 0:
            factors.append(prime)
            number //= prime
        prime += 1
    return [*factors, *([number] if number > 1 else [])]
