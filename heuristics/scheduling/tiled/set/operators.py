"""The six operators of figure 7, each as all trees that it can make, and as one at random.

=== ====================================================================================================
OP1 exchange two leaves that follow each other and do not depend on each other
OP2 move a leaf into a neighbouring cut, or out of its cut into the parent, next to it
OP3 put consecutive children of a cut under a new cut
OP4 delete a cut and give its children to its parent
OP5 more subbatches of a cut; what is below runs on smaller batches
OP6 fewer subbatches
=== ====================================================================================================

Trees stay valid: leaves keep a topological order, batches divide, and cuts of one child dissolve.  Together
the operators reach every tree of the space from every other (section 4.2.1; a test counts it for small
networks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Literal

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node

KINDS: tuple[Literal["S", "T"], ...] = ("S", "T")

Path = tuple[int, ...]
"""Positions of children from the root down."""


def paths(tree: Node) -> Iterator[tuple[Path, Node]]:
    """Every node with the way to it, parents first."""
    stack: list[tuple[Path, Node]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        yield path, node
        stack.extend(((*path, i), node.children[i]) for i in reversed(range(len(node.children))))


def at(tree: Node, path: Path) -> Node:
    """The node at the end of a way."""
    for position in path:
        tree = tree.children[position]
    return tree


def replaced(tree: Node, path: Path, by: Sequence[Node]) -> Node | None:
    """The tree with one node replaced by some (or none), cuts of one child dissolved; ``None`` for nothing
    left.
    """
    if not path:
        return by[0] if len(by) == 1 else None
    assert isinstance(tree, Cut)
    position = path[0]
    if len(path) == 1:
        inner: Sequence[Node] = by
    else:
        below = replaced(tree.children[position], path[1:], by)
        inner = () if below is None else (below,)
    children = (*tree.children[:position], *inner, *tree.children[position + 1 :])
    return cut_like(tree, children)


def cut_like(like: Cut, children: Sequence[Node]) -> Node | None:
    """A cut with other children; one that loses all but one gives that its own batch."""
    if not children:
        return None
    if len(children) == 1 < len(like.children):
        return fitted(children[0], like.batch)
    return Cut(like.kind, like.batch, like.groups, tuple(children))


def fitted(node: Node, batch: int) -> Node:
    """A subtree for another batch: groups stay where they divide it, and otherwise become their common
    divisor.
    """
    if node.batch == batch:
        return node
    if isinstance(node, Leaf):
        return Leaf(node.layer, batch)
    groups = _common(batch, node.groups)
    return Cut(node.kind, batch, groups, tuple(fitted(child, batch // groups) for child in node.children))


def _common(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def divisors(number: int) -> list[int]:
    """Numbers of subbatches that a batch may have."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def exchange(tree: Node, path: Path, other: Path, network: SetNetwork) -> Node | None:
    """OP1: exchange two leaves that follow each other; ``None`` where the second reads the first.

    Parameters
    ----------
    tree : unchanged
    path, other : to the first leaf and to the second
    network : says who reads whom
    """
    first_leaf, second_leaf = at(tree, path), at(tree, other)
    assert isinstance(first_leaf, Leaf)
    assert isinstance(second_leaf, Leaf)
    if first_leaf.layer in network.before[second_leaf.layer]:
        return None
    first = replaced(tree, path, (Leaf(second_leaf.layer, first_leaf.batch),))
    assert first is not None
    return replaced(first, other, (Leaf(first_leaf.layer, second_leaf.batch),))


def move(tree: Node, path: Path, step: int) -> Node | None:
    """OP2 on a leaf: into the neighbouring cut, or out of its cut if it is the first or last child."""
    leaf, parent = at(tree, path), at(tree, path[:-1])
    assert isinstance(leaf, Leaf)
    assert isinstance(parent, Cut)
    position = path[-1]
    beside = position + step
    if 0 <= beside < len(parent.children):
        cut = parent.children[beside]
        if isinstance(cut, Leaf):
            return None
        moved = Leaf(leaf.layer, cut.batch // cut.groups)
        inner = (*cut.children, moved) if step < 0 else (moved, *cut.children)
        children = [child for i, child in enumerate(parent.children) if i not in (position, beside)]
        children.insert(min(position, beside), Cut(cut.kind, cut.batch, cut.groups, inner))
        made = cut_like(parent, children)
        return None if made is None else replaced(tree, path[:-1], (made,))
    if len(path) == 1 or len(parent.children) == 1:
        return None
    rest = cut_like(parent, [child for i, child in enumerate(parent.children) if i != position])
    assert rest is not None
    moved = Leaf(leaf.layer, parent.batch)
    return replaced(tree, path[:-1], (moved, rest) if step < 0 else (rest, moved))


def group(tree: Node, path: Path, begin: int, end: int, kind: Literal["S", "T"], groups: int) -> Node | None:
    """OP3: put consecutive children of a cut under a new cut.

    Parameters
    ----------
    tree : unchanged
    path : to the cut
    begin, end : its first child and the one after the last
    kind, groups : of the new cut
    """
    node = at(tree, path)
    assert isinstance(node, Cut)
    batch = node.batch // node.groups
    new = Cut(
        kind, batch, groups, tuple(fitted(child, batch // groups) for child in node.children[begin:end])
    )
    children = (*node.children[:begin], new, *node.children[end:])
    return replaced(tree, path, (Cut(node.kind, node.batch, node.groups, children),))


def delete(tree: Node, path: Path) -> Node | None:
    """OP4 on a cut below the root."""
    node = at(tree, path)
    return replaced(tree, path, tuple(fitted(child, node.batch) for child in node.children))


def regroup(tree: Node, path: Path, groups: int) -> Node | None:
    """OP5 and OP6: another number of subbatches."""
    node = at(tree, path)
    assert isinstance(node, Cut)
    inner = tuple(fitted(child, node.batch // groups) for child in node.children)
    return replaced(tree, path, (Cut(node.kind, node.batch, groups, inner),))


def neighbours(tree: Node, network: SetNetwork) -> Iterator[tuple[int, Node]]:
    """All trees one step away, with the number of the operator."""
    leafs, cuts = places(tree)
    yield from _made(1, (exchange(tree, a, b, network) for a, b in pairwise(leafs)))
    yield from _made(2, (move(tree, path, step) for path in leafs if path for step in (-1, 1)))
    for path, node in cuts:
        count = len(node.children)
        spans = [(i, j) for i in range(count) for j in range(i + 2, count + 1) if j - i < count]
        inner = divisors(node.batch // node.groups)
        yield from _made(
            3, (group(tree, path, i, j, kind, g) for i, j in spans for kind in KINDS for g in inner)
        )
    yield from _made(4, (delete(tree, path) for path, _ in cuts if path))
    for path, node in cuts:
        every = divisors(node.batch)
        yield from _made(5, (regroup(tree, path, g) for g in every if g > node.groups))
        yield from _made(6, (regroup(tree, path, g) for g in every if g < node.groups))


def _made(number: int, trees: Iterable[Node | None]) -> Iterator[tuple[int, Node]]:
    return ((number, tree) for tree in trees if tree is not None)


@lru_cache(maxsize=4)
def places(tree: Node) -> tuple[list[Path], list[tuple[Path, Cut]]]:
    """Ways to all leaves, and all cuts with the ways to them; random steps ask often for the same tree."""
    every = list(paths(tree))
    leafs = [path for path, node in every if isinstance(node, Leaf)]
    return leafs, [(path, node) for path, node in every if isinstance(node, Cut)]


def random_step(tree: Node, network: SetNetwork, random: Random) -> Node | None:
    """One operator at random on a place at random; ``None`` where it does not apply there."""
    return operator_step(tree, network, random, random.randrange(1, 7))


def operator_step(tree: Node, network: SetNetwork, random: Random, which: int) -> Node | None:
    """One operator on a place at random; ``None`` where it does not apply there.

    Parameters
    ----------
    tree : unchanged
    network : says who reads whom
    random : chooses the place and the operator's arguments
    which : number of the operator, 1 to 6
    """
    leafs, cuts = places(tree)
    if which == 1:
        if len(leafs) < 2:
            return None
        first = random.randrange(len(leafs) - 1)
        return exchange(tree, leafs[first], leafs[first + 1], network)
    if which == 2:
        path = random.choice(leafs)
        return move(tree, path, random.choice((-1, 1))) if path else None
    if not cuts:
        return None
    path, node = random.choice(cuts)
    if which == 3:
        count = len(node.children)
        begin, end = sorted(random.sample(range(count + 1), 2))
        if not 2 <= end - begin < count:
            return None
        inner = divisors(node.batch // node.groups)
        return group(tree, path, begin, end, random.choice(KINDS), random.choice(inner))
    if which == 4:
        return delete(tree, path) if path else None
    others = [g for g in divisors(node.batch) if (g > node.groups if which == 5 else g < node.groups)]
    return regroup(tree, path, random.choice(others)) if others else None
