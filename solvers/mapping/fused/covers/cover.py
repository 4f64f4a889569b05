"""The cheapest way to cover a network's layers by groups that can run one after the other.

Layers are gone through in the network's order.  What matters of the layers so far is only which later ones
their groups hold already, so equal remainders are kept once, with the least cost.  A cover whose groups wait
for each other in a circle is no order; then one of the circle's groups is left out, each in a branch.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

Group = tuple[int, ...]
"""Places of layers in the network's order, rising."""


@dataclass(frozen=True)
class Cover:
    """Groups that hold every layer once.

    Parameters
    ----------
    groups : by their first layers
    cost : their sum
    """

    groups: tuple[Group, ...]
    cost: Fraction


def least_cover(
    layers: Sequence[int],
    costs: Mapping[Group, Fraction],
    circle_of: Callable[[Sequence[Group]], list[Group]] = lambda groups: [],
) -> Cover | None:
    """The cover of least cost; ``None`` where there is none.

    Parameters
    ----------
    layers : places of the layers to be covered, rising
    costs : of every group that may be used
    circle_of : groups of a cover that wait for each other in a circle; empty where there is no circle
    """
    numbers = count()
    tried: set[frozenset[Group]] = set()
    waiting: list[tuple[Fraction, int, frozenset[Group], Cover]] = []

    def offer(left_out: frozenset[Group]) -> None:
        if left_out not in tried:
            tried.add(left_out)
            cover = _any_cover(layers, (item for item in costs.items() if item[0] not in left_out))
            if cover is not None:
                heapq.heappush(waiting, (cover.cost, next(numbers), left_out, cover))

    offer(frozenset())
    while waiting:
        _, _, left_out, cover = heapq.heappop(waiting)
        circle = circle_of(cover.groups)
        if not circle:
            return cover
        for group in circle:
            offer(left_out | {group})
    return None


def _any_cover(layers: Sequence[int], costs: Iterable[tuple[Group, Fraction]]) -> Cover | None:
    """The cover of least cost, circles or not."""
    place = {layer: index for index, layer in enumerate(layers)}
    starting: list[list[tuple[int, Fraction, Group]]] = [[] for _ in layers]
    for group, cost in costs:
        if all(layer in place for layer in group):
            first = place[group[0]]
            held = sum(1 << (place[layer] - first) for layer in group)
            starting[first].append((held, cost, group))
    # Per set of layers ahead that are covered already: the cost, and the groups as a chain.
    states: dict[int, tuple[Fraction, object]] = {0: (Fraction(0), None)}
    for options in starting:
        following: dict[int, tuple[Fraction, object]] = {}
        for ahead, (cost, chain) in states.items():
            steps = (
                [(ahead, cost, chain)]
                if ahead & 1
                else [
                    (ahead | held, cost + own, (chain, group))
                    for held, own, group in options
                    if not ahead & held
                ]
            )
            for covered, total, groups in steps:
                known = following.get(covered >> 1)
                if known is None or total < known[0]:
                    following[covered >> 1] = total, groups
        states = following
    if 0 not in states:
        return None
    cost, at = states[0]
    chosen: list[Group] = []
    while isinstance(at, tuple):
        at, group = at
        chosen.append(group)
    return Cover(tuple(reversed(chosen)), cost)
