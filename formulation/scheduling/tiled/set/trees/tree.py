"""The resource allocation tree (section 3.1): leaves, S cuts and T cuts, and what makes a tree valid.

A node is ``(type, C, L, TG, b, sb, FROM, TO)``.  Type, children and batch are the data here; layers, groups,
dependencies and tiles follow from them, and formulas (1) to (10) are checked by `check_tree` or hold by
construction:

==== ==================================================================================
(1)  a node is a `Leaf` or a `Cut` of kind ``S`` or ``T``
(2)  children are a tuple
(3)  layers are numbers of a network's layers, tiles those of the machine
(4)  batches are positive; ``sb`` divides ``b``
(5)  ``FROM``, (6) ``TO``: `SetNetwork.before` and ``after``; leaves must be in a topological order
(7)  a leaf has one layer and one batch
(8)  a cut has children, their layers are disjoint, and each has the batch ``b / sb``
(9)  children of a T cut share its tiles, (10) those of an S cut divide them: `closed_form.py`
==== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.foundation.errors import TilewrightError


class InvalidTreeError(TilewrightError, ValueError):
    """A tree that breaks one of formulas (1) to (10), naming the node and the formula."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One layer, ``batch`` samples at a time."""

    layer: int
    batch: int

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    @property
    def groups(self) -> int:
        return 1

    @property
    def mask(self) -> int:
        """The layer as a set of bits."""
        return 1 << self.layer


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A group of nodes that share tiles in turn (``T``) or divide them (``S``).

    Parameters
    ----------
    batch : samples of one run of the cut
    groups : subbatches; each child runs so often, on ``batch / groups`` samples
    stripes : row stripes of a sample in which its leaves run and pass on (`leaf/stripes.py`)
    mask : all its layers, as a set of bits
    """

    kind: Literal["S", "T"]
    batch: int
    groups: int
    children: tuple[Node, ...]
    stripes: int = 1
    mask: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mask = 0
        for child in self.children:
            mask |= child.mask
        object.__setattr__(self, "mask", mask)
        object.__setattr__(
            self, "_hash", hash((self.kind, self.batch, self.groups, self.children, self.stripes))
        )

    @property
    def written(self) -> str:
        """Kind, batch and groups as trees are written, and the number of row stripes where there are any."""
        parts = f"/{self.stripes}" if self.stripes != 1 else ""
        return f"{self.kind} {self.batch}/{self.groups}{parts}"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Cut)
            and self._hash == other._hash
            and (self.kind, self.batch, self.groups, self.stripes)
            == (other.kind, other.batch, other.groups, other.stripes)
            and self.children == other.children
        )


Node = Leaf | Cut


def leaves(node: Node) -> Iterator[Leaf]:
    """The leaves of a tree from left to right."""
    if isinstance(node, Leaf):
        yield node
        return
    for child in node.children:
        yield from leaves(child)


def nodes(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """All nodes with their depths, parents first, children from left to right."""
    yield depth, node
    for child in node.children:
        yield from nodes(child, depth + 1)


def layer_order(node: Node) -> tuple[int, ...]:
    """Layers in the order of the leaves."""
    return tuple(leaf.layer for leaf in leaves(node))


def depth(node: Node) -> int:
    """Cuts above the deepest leaf."""
    return 1 + max(depth(child) for child in node.children) if node.children else 0


def rebatched(node: Node, batch: int) -> Node:
    """The same tree for another batch: cuts keep their groups where these divide, otherwise as many as
    divide.
    """
    if isinstance(node, Leaf):
        return node if node.batch == batch else Leaf(node.layer, batch)
    groups = node.groups if batch % node.groups == 0 else _divisor(batch, node.groups)
    if node.stripes > 1:
        groups = batch
    children = tuple(rebatched(child, batch // groups) for child in node.children)
    return Cut(node.kind, batch, groups, children, node.stripes)


def _divisor(batch: int, groups: int) -> int:
    return max(divisor for divisor in range(1, min(batch, groups) + 1) if batch % divisor == 0)


def chain(order: tuple[int, ...], batch: int, groups: int = 1) -> Cut:
    """All layers one after the other under a root T cut, SET's first tree."""
    return Cut("T", batch, groups, tuple(Leaf(layer, batch // groups) for layer in order))


def rooted(row: Sequence[Node], batch: int, groups: int = 1) -> Node:
    """Segments as a tree: under a root T cut, whose only child a lone T cut is (as the root itself its
    children would pass everything through DRAM); another lone segment is the tree.
    """
    lone = row[0]
    if len(row) > 1 or groups > 1 or (isinstance(lone, Cut) and lone.kind == "T"):
        return Cut("T", batch, groups, tuple(row))
    return lone


def check_tree(tree: Node, network: SetNetwork, batch: int) -> None:
    """Raise `InvalidTreeError` where a tree is none of a network and batch."""

    def named(node: Node) -> str:
        if isinstance(node, Leaf):
            inside = 0 <= node.layer < len(network)
            return network.layers[node.layer].name if inside else f"leaf {node.layer}"
        inner = [named(leaf) for leaf in leaves(node)]
        span = f" of {inner[0]} to {inner[-1]}" if inner else ""
        return f"{node.written}{span}"

    for level, node in nodes(tree):
        if isinstance(node, Cut) and node.stripes != 1:
            under = level == 1 and isinstance(tree, Cut) and tree.kind == "T"
            above = under or (level == 0 and node.kind == "S")
            single = node.batch == node.groups and all(isinstance(part, Leaf) for part in node.children)
            if node.stripes < 1 or not above or not single:
                raise InvalidTreeError(
                    f"{named(node)}: only a cut of leaves of one sample, an S cut as the root or any "
                    "under a root T cut, has bands"
                )
        if isinstance(node, Leaf):
            if not 0 <= node.layer < len(network):
                raise InvalidTreeError(f"layer {node.layer}, expected one of {len(network)} (formula 3)")
        elif node.kind not in ("S", "T"):
            raise InvalidTreeError(f"{named(node)}: expected an S or a T cut (formula 1)")
        elif not node.children:
            raise InvalidTreeError(f"{named(node)}: a cut has children (formula 8)")
        if node.batch < 1 or node.groups < 1 or node.batch % node.groups:
            raise InvalidTreeError(f"{named(node)}: groups must divide the batch (formula 4)")
        for child in node.children:
            if child.batch != node.batch // node.groups:
                raise InvalidTreeError(
                    f"{named(child)}: batch {child.batch} under {named(node)}, "
                    f"expected {node.batch // node.groups} (formula 8)"
                )
    if tree.batch != batch:
        raise InvalidTreeError(f"the root's batch is {tree.batch}, expected {batch}")
    done: set[int] = set()
    for layer in layer_order(tree):
        if layer in done:
            raise InvalidTreeError(f"{network.layers[layer].name} is twice in the tree (formula 8)")
        early = network.before[layer] - done
        if early:
            first = network.layers[min(early)].name
            raise InvalidTreeError(
                f"{network.layers[layer].name} precedes {first}, which it reads (formulas 5 and 6)"
            )
        done.add(layer)
    missing = set(range(len(network))) - done
    if missing:
        raise InvalidTreeError(f"{network.layers[min(missing)].name} is not in the tree (formula 8)")
