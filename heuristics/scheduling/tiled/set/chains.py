"""Chains of segments: the best sequence of children of a root T cut, over all topological orders.

The layers done after some segments form a *down-set*: layers with all that they read.  Segments are edges
between down-sets with an energy and a time; both add up along a chain.  A label (energy, time) at a down-set
is dropped where another is no worse in both or its best completion is not below the best value known.  So the
chain found is the best of all that the segments allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node


@dataclass(frozen=True, slots=True)
class Segment:
    """A child of the root.

    Parameters
    ----------
    start, end : layers done before and after it, as sets of bits
    energy, cycles : of one run
    """

    start: int
    end: int
    energy: float
    cycles: int
    tree: Node


@dataclass
class Segments:
    """All segments known, by where they begin; of equal ends only those that no other beats in both."""

    by_start: dict[int, dict[int, list[Segment]]] = field(default_factory=dict)

    def add(self, segment: Segment) -> bool:
        """Add a segment unless another one is as good; returns whether it was added."""
        rivals = self.by_start.setdefault(segment.start, {}).setdefault(segment.end, [])
        if any(other.energy <= segment.energy and other.cycles <= segment.cycles for other in rivals):
            return False
        rivals[:] = [o for o in rivals if o.energy < segment.energy or o.cycles < segment.cycles]
        rivals.append(segment)
        return True

    def from_start(self, start: int) -> Iterable[Segment]:
        """All segments that begin behind a down-set."""
        for rivals in self.by_start.get(start, {}).values():
            yield from rivals


def down_sets(network: SetNetwork, *, in_order: bool = False) -> tuple[list[int], bool]:
    """All down-sets, smallest first, and whether these are all of them.

    Where they are too many, or `in_order` asks for it, they are the prefixes of the network's own order.
    """
    sets = None if in_order else network.down_sets()
    if sets is None:
        return [(1 << count) - 1 for count in range(len(network) + 1)], False
    return sets, True


def shortest(segments: Segments, sets: list[int], weigh: Callable[[Segment], float]) -> dict[int, float]:
    """Per down-set, the least weight of a chain from it to the end."""
    rest = dict.fromkeys(sets, inf)
    rest[sets[-1]] = 0.0
    for start in reversed(sets[:-1]):
        for segment in segments.from_start(start):
            behind = rest.get(segment.end, inf)
            if behind < inf:
                rest[start] = min(rest[start], weigh(segment) + behind)
    return rest


def best_chain(
    segments: Segments,
    sets: list[int],
    value: Callable[[float, float], float],
    most_labels: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[list[Segment], bool]:
    """The chain with the least value; empty where no chain reaches the end.

    Parameters
    ----------
    value : of energy and cycles, rising in both
    most_labels : labels per down-set; 0 for all
    stop : whether the time is up, from when on the best of weighted sums is all

    Returns
    -------
    the chain, and whether it is the best of all
    """
    least_energy = shortest(segments, sets, lambda segment: segment.energy)
    least_cycles = shortest(segments, sets, lambda segment: float(segment.cycles))
    if least_energy[0] == inf:
        return [], True
    best, best_value = _weighted(segments, sets, value, least_energy[0], least_cycles[0])
    labels: dict[int, list[tuple[float, float, int, Segment | None]]] = {0: [(0.0, 0.0, -1, None)]}
    exact = True
    final = sets[-1]
    for start in sets:
        front = _front(labels.get(start, []))
        if most_labels and len(front) > most_labels:
            exact = False
            keep = sorted(
                front,
                key=lambda segment: value(segment[0] + least_energy[start], segment[1] + least_cycles[start]),
            )
            front = sorted(keep[:most_labels])
        labels[start] = front
        if start == final:
            break
        for number, (energy, cycles, _, _) in enumerate(front):
            if stop():
                return best, False
            for segment in segments.from_start(start):
                if least_energy.get(segment.end, inf) == inf:
                    continue
                e, t = energy + segment.energy, cycles + segment.cycles
                if value(e + least_energy[segment.end], t + least_cycles[segment.end]) < best_value:
                    labels.setdefault(segment.end, []).append((e, t, number, segment))
    ends = labels.get(final, [])
    if not ends:
        return best, exact
    number = min(range(len(ends)), key=lambda i: value(ends[i][0], ends[i][1]))
    if value(ends[number][0], ends[number][1]) >= best_value:
        return best, exact
    chain: list[Segment] = []
    at = final
    while at:
        _, _, before, last = labels[at][number]
        assert last is not None
        chain.append(last)
        at, number = last.start, before
    return chain[::-1], exact


def _front(
    labels: list[tuple[float, float, int, Segment | None]],
) -> list[tuple[float, float, int, Segment | None]]:
    """Labels that no other beats, by rising energy."""
    front: list[tuple[float, float, int, Segment | None]] = []
    fastest = inf
    for point in sorted(labels, key=lambda label: label[:2]):
        if point[1] < fastest:
            front.append(point)
            fastest = point[1]
    return front


def _weighted(
    segments: Segments, sets: list[int], value: Callable[[float, float], float], energy: float, cycles: float
) -> tuple[list[Segment], float]:
    """A good chain by weighing energy against time, the weight moved along the way."""
    best: list[Segment] = []
    best_value = inf
    ratios = [cycles / energy * factor for factor in (0.25, 0.5, 1.0, 2.0, 4.0)] if energy else [1.0]
    for ratio in ratios:
        chain = weighted_chain(segments, sets, ratio)
        rated = value(sum(segment.energy for segment in chain), sum(segment.cycles for segment in chain))
        if rated < best_value:
            best, best_value = chain, rated
    return best, best_value


def weighted_chain(segments: Segments, sets: list[int], ratio: float) -> list[Segment]:
    """The chain with the least ``ratio * energy + cycles``."""
    rest = shortest(segments, sets, lambda segment: ratio * segment.energy + segment.cycles)
    chain: list[Segment] = []
    at, final = 0, sets[-1]
    while at != final:
        segment = min(
            segments.from_start(at),
            key=lambda edge: ratio * edge.energy + edge.cycles + rest.get(edge.end, inf),
        )
        chain.append(segment)
        at = segment.end
    return chain
