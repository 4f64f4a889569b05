"""Which layers of a network may form a group: linked ones between which no other layer stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from tilewright.solvers.mapping.fused.covers.cover import Group
from tilewright.workloads.network import Link, Network


class GroupGraph:
    """The layers of a network as numbers, and who waits for whom.

    Parameters
    ----------
    network : with the layers that are not mapped, too: results pass through them
    layers : names of those that are mapped, in the network's order
    """

    def __init__(self, network: Network, layers: Sequence[str]) -> None:
        self.network = network
        self.names = [layer.name for layer in network.layers]
        self.number = {name: index for index, name in enumerate(self.names)}
        self.chosen = frozenset(self.number[name] for name in layers)
        self.between: dict[tuple[int, int], list[Link]] = {}
        for link in network.links:
            if link.producer is not None:
                pair = self.number[link.producer], self.number[link.consumer]
                self.between.setdefault(pair, []).append(link)

    @cached_property
    def readers(self) -> list[list[int]]:
        """Per layer, those that read its result."""
        readers: list[list[int]] = [[] for _ in self.names]
        for producer, reader in self.between:
            readers[producer].append(reader)
        return readers

    @cached_property
    def _behind(self) -> list[int]:
        """Per layer, the set of all that wait for it."""
        behind = [0] * len(self.names)
        for layer in reversed(range(len(self.names))):
            for reader in self.readers[layer]:
                behind[layer] |= behind[reader] | 1 << reader
        return behind

    @cached_property
    def _before(self) -> list[int]:
        """Per layer, the set of all that it waits for."""
        before = [0] * len(self.names)
        for layer in range(len(self.names)):
            for reader in self.readers[layer]:
                before[reader] |= before[layer] | 1 << layer
        return before

    def is_linked(self, pair: tuple[int, int]) -> bool:
        """Whether every link from one layer to another knows its axes."""
        links = self.between.get(pair, [])
        return bool(links) and all(link.axes is not None for link in links)

    def may_run_as_one(self, group: Group) -> bool:
        """Whether no other layer stands between those of the group, and all links inside know their axes."""
        held = sum(1 << layer for layer in group)
        behind = before = 0
        for layer in group:
            behind |= self._behind[layer]
            before |= self._before[layer]
        if behind & before & ~held:
            return False
        inside = [(layer, reader) for layer in group for reader in self.readers[layer] if held >> reader & 1]
        return all(self.is_linked(pair) for pair in inside)

    def groups(self, most: int) -> list[Group]:
        """All groups of two layers or more, small ones first, in the network's order.

        Parameters
        ----------
        most : layers at most
        """
        linked: dict[int, set[int]] = {layer: set() for layer in self.chosen}
        for pair in self.between:
            if self.chosen.issuperset(pair) and self.is_linked(pair):
                linked[pair[0]].add(pair[1])
                linked[pair[1]].add(pair[0])
        groups: set[Group] = set()
        for layer in self.chosen:
            groups |= set(_connected(layer, linked, most))
        return sorted((g for g in groups if self.may_run_as_one(g)), key=lambda g: (len(g), g))

    def circle_of(self, groups: Sequence[Group]) -> list[Group]:
        """Groups that wait for each other in a circle; empty where they can run in some order."""
        import networkx as nx  # large, and covers of chains need none of it

        if all(group[-1] - group[0] == len(group) - 1 for group in groups):
            return []
        owner = {layer: index for index, group in enumerate(groups) for layer in group}
        graph: nx.DiGraph[int] = nx.DiGraph()
        for producer, reader in self.between:
            ends = owner.get(producer, -1 - producer), owner.get(reader, -1 - reader)
            if ends[0] != ends[1]:
                graph.add_edge(*ends)
        try:
            circle = nx.find_cycle(graph)
        except nx.NetworkXNoCycle:
            return []
        inside = dict.fromkeys(end for edge in circle for end in edge[:2] if end >= 0)
        return [groups[index] for index in inside if len(groups[index]) > 1]


def _connected(first: int, linked: dict[int, set[int]], most: int) -> Iterator[Group]:
    """Sets of linked layers of which ``first`` is the first, each once or more."""
    seen: set[frozenset[int]] = set()
    waiting = [frozenset((first,))]
    while waiting:
        held = waiting.pop()
        if held in seen:
            continue
        seen.add(held)
        if len(held) > 1:
            yield tuple(sorted(held))
        if len(held) < most:
            near = {other for layer in held for other in linked[layer] if other > first} - held
            waiting += [held | {other} for other in near]
