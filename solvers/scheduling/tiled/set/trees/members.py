"""Trees that differ only in the order of children.

In an S cut children may stand in any order in which producers come first.  Stages and processing times are
the same, and so are numbers of tiles except for ties (`any_order.py`); the tiles themselves differ.  In a T
cut, orders with the same direct reads are equivalent: every leaf runs on the same tiles and reads and stores
the same.  Energy and cycles are equal; only what lies in the buffers together differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node


class Members:
    """The trees that one stands for.

    Parameters
    ----------
    exact : whether sums of processing times are without rounding; each tree stands for itself otherwise
    """

    def __init__(self, dataflow: DataFlow, exact: bool) -> None:
        self.dataflow, self._exact = dataflow, exact
        self._before = [mask for mask, _ in dataflow.network.masks]
        self._turned: dict[Node, tuple[Node, ...]] = {}
        self._alike: dict[Node, tuple[tuple[Node, ...], ...]] = {}

    def buffers_apart(self, node: Node) -> tuple[Node, ...]:
        """All orders of children of T cuts with the same direct reads, beginning with the tree itself."""
        trees = self._turned.get(node)
        if trees is None:
            trees = self._turned[node] = tuple(self._turns(node))
        return trees

    def _turns(self, node: Node) -> Iterator[Node]:
        if isinstance(node, Leaf) or not self._exact:
            yield node
            return
        for row in self.alike(node) if node.kind == "T" else (node.children,):
            for children in itertools.product(*(self.buffers_apart(child) for child in row)):
                yield Cut(node.kind, node.batch, node.groups, children)

    def alike(self, node: Cut) -> tuple[tuple[Node, ...], ...]:
        """The children of a T cut in every order with the same direct reads, its own first."""
        if not self._exact:
            return (node.children,)
        trees = self._alike.get(node)
        if trees is None:
            same, rows = self.dataflow.reads(node), []
            for order in self._orders(node):
                row = tuple(node.children[at] for at in order)
                reads = self.dataflow.reads(Cut(node.kind, node.batch, node.groups, row))
                if (reads.direct, reads.stored) == (same.direct, same.stored):
                    rows.append(row)
            trees = self._alike[node] = tuple(rows)
        return trees

    def _orders(self, node: Cut) -> Iterator[tuple[int, ...]]:
        """Every order of the children of a cut in which producers come first, its own before others."""
        children = node.children
        reads = [self._reads(child.mask) for child in children]

        def grow(order: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
            if not left:
                yield order
            for at in range(len(children)):
                if children[at].mask & left and not reads[at] & left & ~children[at].mask:
                    yield from grow((*order, at), left & ~children[at].mask)

        return grow((), node.mask)

    def _reads(self, mask: int) -> int:
        reads = 0
        for layer in range(mask.bit_length()):
            if mask >> layer & 1:
                reads |= self._before[layer]
        return reads
