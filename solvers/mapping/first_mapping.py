"""A mapping of a layer within a moment: what a search has to show that ended before it found any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.hardware.mapping.engine import ArrayAxis
from tilewright.workloads.mapping.operator import Dimension

SOURCE = "greedy"
_MOST = 60  # mappings that are evaluated, some milliseconds each


def offer_any_mapping(search: LayerSearch, over: Callable[[], bool] = lambda: False) -> None:
    """Offer a mapping where nothing is known.

    It begins with single elements in every store inside the outermost level, for which hardly any store is
    too small; demands may exclude it.  From there tiles grow by prime factors as long as that helps, array
    axes first, then inner stores, until something is over.
    """
    if search.key is None:
        search.offer(_grown(search.problem, over), SOURCE, Origin.HEURISTIC)


@dataclass(frozen=True, slots=True)
class _Site:
    """A place of loops inside the outermost level's."""

    level: int
    axis: ArrayAxis | None

    def carries(self, dimension: Dimension) -> bool:
        return self.axis is None or self.axis.carries is None or dimension.like in self.axis.carries


Trips = dict[tuple[_Site, str], int]


def _grown(problem: LayerProblem, over: Callable[[], bool]) -> Mapping:
    axes, stores = _sites(problem)
    trips: Trips = {}
    best = problem.judge(_mapping(problem, trips))
    tried = 1
    for site in (*axes, *reversed(stores)):
        for dimension in problem.operator.dimensions:
            while site.carries(dimension) and tried < _MOST and not over():
                left = dimension.bound // _product(trips, dimension.name)
                step = {**trips, (site, dimension.name): trips.get((site, dimension.name), 1) * _prime(left)}
                if left == 1:
                    break
                judged, tried = problem.judge(_mapping(problem, step)), tried + 1
                if judged.violations or judged.outside is not None or judged.key >= best.key:
                    break
                trips, best = step, judged
    return best.answer


def _sites(problem: LayerProblem) -> tuple[list[_Site], list[_Site]]:
    """Array axes, and stores inside the outermost level, outermost first."""
    roles = {tensor.role for tensor in problem.operator.tensors}
    axes, stores = [], []
    for index, level in enumerate(problem.engine.levels):
        if index and roles & level.keeps:
            stores.append(_Site(index, None))
        axes += [_Site(index, axis) for axis in (level.fanout.axes if level.fanout else ())]
    return axes, stores


def _product(trips: Trips, dim: str) -> int:
    result = 1
    for (_, name), count in trips.items():
        result *= count if name == dim else 1
    return result


def _prime(number: int) -> int:
    """The least prime factor."""
    return next((p for p in range(2, int(number**0.5) + 1) if number % p == 0), number)


def _mapping(problem: LayerProblem, trips: Trips) -> Mapping:
    """The mapping with these trips, all others in the outermost level."""
    operator, engine = problem.operator, problem.engine
    axes, stores = _sites(problem)
    tile = {dim: _product(trips, dim) for dim in operator.bounds}
    nodes: list[Node] = []
    for index, level in enumerate(engine.levels):
        nodes += [
            Storage(tensor.name, level.name) for tensor in operator.tensors if tensor.role in level.keeps
        ]
        if not index:
            nodes += [Temporal(dim, tile[dim]) for dim, bound in operator.bounds.items() if tile[dim] < bound]
        for site in (
            *(node for node in stores if node.level == index),
            *(node for node in axes if node.level == index),
        ):
            for dim in operator.bounds:
                count = trips.get((site, dim), 1)
                if count > 1:
                    tile[dim] //= count
                    nodes.append(
                        Temporal(dim, tile[dim])
                        if site.axis is None
                        else Spatial(dim, tile[dim], site.axis.name)
                    )
    return Mapping(tuple(nodes))
