"""All trees of a small network: the oracle of all searches over trees.

The space has every topological order, every tree over it whose cuts have at least two children, either kind
of every cut, and every number of subbatches that divides its batch; and the same below a root T cut with a
single child, so that nothing inside has to go through DRAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node


def topological_orders(network: SetNetwork) -> Iterator[tuple[int, ...]]:
    """Every order in which producers stand before their readers."""
    count = len(network)
    before = [mask for mask, _ in network.masks]

    def grow(order: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
        if len(order) == count:
            yield order
            return
        for layer in range(count):
            if not done >> layer & 1 and not before[layer] & ~done:
                yield from grow((*order, layer), done | 1 << layer)

    return grow((), 0)


def trees_over(order: tuple[int, ...], batch: int) -> tuple[Node, ...]:
    """Every tree over one order."""

    @cache
    def trees(begin: int, end: int, samples: int) -> tuple[Node, ...]:
        if end - begin == 1:
            return (Leaf(order[begin], samples),)
        trees_made: list[Node] = []
        for groups in range(1, samples + 1):
            if samples % groups == 0:
                for children in rows(begin, end, samples // groups):
                    if len(children) > 1:
                        trees_made.append(Cut("S", samples, groups, children))
                        trees_made.append(Cut("T", samples, groups, children))
        return tuple(trees_made)

    @cache
    def rows(begin: int, end: int, samples: int) -> tuple[tuple[Node, ...], ...]:
        """Every row of nodes that cover a span; one node alone is a row unless it covers the whole span."""
        rows_made: list[tuple[Node, ...]] = []
        for middle in range(begin + 1, end):
            rows_made.extend(
                (first, *rest)
                for first in trees(begin, middle, samples)
                for rest in (*rows(middle, end, samples), *((tree,) for tree in trees(middle, end, samples)))
            )
        return tuple(rows_made)

    return trees(0, len(order), batch)


def lone_trees(network: SetNetwork, batch: int) -> Iterator[Node]:
    """Every root T cut with a single cut below it, over all orders."""
    for order in topological_orders(network):
        for groups in range(1, batch + 1):
            if batch % groups == 0:
                for tree in trees_over(order, batch // groups):
                    yield Cut("T", batch, groups, (tree,))


def all_trees(network: SetNetwork, batch: int) -> Iterator[Node]:
    """Every tree of a network whose cuts all have at least two children."""
    for order in topological_orders(network):
        yield from trees_over(order, batch)
