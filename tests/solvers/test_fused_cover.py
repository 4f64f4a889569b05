"""Covers of a graph by groups, against all partitions."""

import itertools
from fractions import Fraction
from random import Random

import networkx as nx

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.group import Reading
from tilewright.solvers.mapping.fused.columns.cover_model import least_cover as modelled_cover
from tilewright.solvers.mapping.fused.columns.linked import Linked
from tilewright.solvers.mapping.fused.covers.cover import Group, least_cover
from tilewright.solvers.mapping.fused.covers.groups import GroupGraph
from tilewright.workloads.mapping.operators import elementwise
from tilewright.workloads.network import Layer, Link, Network


def partitions(items: list[int]) -> list[list[Group]]:
    if not items:
        return [[]]
    first, rest = items[0], items[1:]
    return [
        [(first, *others), *more]
        for size in range(4)
        for others in itertools.combinations(rest, size)
        for more in partitions([item for item in rest if item not in others])
    ]


def random_network(rng: Random, layers: int) -> Network:
    links = [
        Link(f"l{a}", f"l{b}", f"I{a}", "t", 4, axes=(0, 1) if rng.random() < 0.8 else None, offsets=(0, 0))
        for a, b in itertools.combinations(range(layers), 2)
        if rng.random() < 0.4
    ]
    made = [Layer(f"l{i}", elementwise(shape=(2, 2), operands=layers + 1), "t") for i in range(layers)]
    return Network("random", made, links)


def can_run(network: Network, groups: list[Group]) -> bool:
    owner = {f"l{layer}": number for number, group in enumerate(groups) for layer in group}
    edges = [(owner[link.producer], owner[link.consumer]) for link in network.links if link.producer]
    return nx.is_directed_acyclic_graph(nx.DiGraph([edge for edge in edges if edge[0] != edge[1]]))


def is_group(network: Network, group: Group) -> bool:
    """Linked, with all axes inside known, and able to run beside all other layers alone."""
    names = [f"l{layer}" for layer in group]
    inside = [link for link in network.links if link.producer in names and link.consumer in names]
    graph = nx.Graph([(link.producer, link.consumer) for link in inside])
    graph.add_nodes_from(names)
    others = [(layer,) for layer in range(len(network)) if layer not in group]
    known = all(link.axes is not None for link in inside)
    return known and nx.is_connected(graph) and can_run(network, [group, *others])


def linked(network: Network) -> Linked:
    """The same layers for the second opinion."""
    waits = [
        (
            link.producer or "",
            link.consumer,
            None
            if link.axes is None
            else Reading(link.consumer, link.operand, link.producer or "", link.axes, link.offsets),
        )
        for link in network.links
    ]
    names = tuple(layer.name for layer in network.layers)
    operators = {layer.name: layer.operator for layer in network.layers}
    return Linked(names, operators, tuple(waits), frozenset(network.outputs))


def test_groups_and_covers_are_those_of_all_partitions() -> None:
    """The search's covers and every third of the second opinion's cost as little as the best partition."""
    rng = Random(3)
    circles = 0
    for number in range(60):
        network = random_network(rng, rng.randint(2, 7))
        graph = GroupGraph(network, [layer.name for layer in network.layers])
        groups = graph.groups(4)
        everything = [
            group
            for size in range(2, 5)
            for group in itertools.combinations(range(len(network)), size)
            if is_group(network, group)
        ]
        assert sorted(groups) == sorted(everything)
        alone: dict[Group, Fraction] = {
            (layer,): Fraction(rng.randint(5, 9)) for layer in range(len(network))
        }
        costs = alone | {group: Fraction(rng.randint(2, 9 * len(group)), 3) for group in groups}
        legal = [
            (sum(costs[group] for group in parts), parts)
            for parts in partitions(list(range(len(network))))
            if all(group in costs for group in parts) and can_run(network, parts)
        ]
        cover = least_cover(range(len(network)), costs, graph.circle_of)
        assert cover is not None
        assert cover.cost == min(cost for cost, _ in legal) == sum(costs[group] for group in cover.groups)
        assert can_run(network, list(cover.groups))
        if not number % 3:
            other = linked(network)
            named = {tuple(f"l{layer}" for layer in group): cost for group, cost in costs.items()}
            assert set(other.groups(4)) == set(named)
            assert modelled_cover(other, named, Limits(threads=1))[0] == cover.cost
        free = least_cover(range(len(network)), costs)
        circles += free is not None and free.cost < cover.cost
    assert circles, "no case in which groups wait for each other in a circle"
