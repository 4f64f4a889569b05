"""Random steps of this package's annealing: SET's six operators, and steps that combine several of these.

With few steps per layer, SET's operators seldom join two segments or move the border between them: the trees
in between move more through DRAM, and a random span of children is mostly too long for the buffers.  Here
half of the spans are short, and these steps are added to the six operators:

====== ==============================================================================================
merge  two children that follow each other become one cut, as one of them is, of the children of both
shift  some children at the border of two cuts that follow each other go over to the other one
split  a cut falls into two of its kind
change an S cut becomes a T cut, and the other way round
====== ==============================================================================================

Trees stay valid as in `operators.py`.
"""

from __future__ import annotations

from random import Random

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node
from tilewright.heuristics.scheduling.tiled.set.operators import (
    KINDS,
    Path,
    at,
    cut_like,
    divisors,
    fitted,
    group,
    operator_step,
    places,
    replaced,
)

WEIGHTS = {
    "exchange": 4,
    "move": 4,
    "group": 2,
    "group few": 2,
    "delete": 2,
    "more": 2,
    "fewer": 2,
    "merge": 4,
    "shift": 4,
    "split": 1,
    "change": 1,
}
"""How often each kind of step is tried."""

OPERATORS = {"exchange": 1, "move": 2, "group": 3, "delete": 4, "more": 5, "fewer": 6}
"""Steps that are SET's, by the number of the operator."""

LONGER, FURTHER, AT_ROOT = 0.6, 0.4, 0.5
"""Chances that a span of children to group is one longer, that one more child is shifted, and that a merge or
a shift is among the children of the root.
"""

LARGEST = 16
"""Layers that are merged: longer segments take long to evaluate, and seldom fit."""


def merge(tree: Node, path: Path, first: int, like: Cut) -> Node | None:
    """Merge two consecutive children of a cut into one cut.

    Parameters
    ----------
    tree : unchanged
    path : to the cut
    first : position of the first of the two
    like : the child whose kind, batch and groups the new cut takes
    """
    node = at(tree, path)
    assert isinstance(node, Cut)
    inner = like.batch // like.groups
    children: list[Node] = []
    for child in node.children[first : first + 2]:
        same = isinstance(child, Cut) and child.kind == like.kind
        children.extend(fitted(part, inner) for part in (child.children if same else (child,)))
    new = Cut(like.kind, like.batch, like.groups, tuple(children))
    row = (*node.children[:first], new, *node.children[first + 2 :])
    if not path:  # a root may have one child
        return Cut(node.kind, node.batch, node.groups, row)
    made = cut_like(node, row)
    return None if made is None else replaced(tree, path, (made,))


def shift(tree: Node, path: Path, first: int, count: int, *, back: bool) -> Node | None:
    """Move children across the border of two consecutive cuts; ``None`` where a cut would become empty.

    Parameters
    ----------
    tree : unchanged
    path : to the parent of both
    first : position of the first of the two
    count : children that are moved
    back : whether they move from the second to the first
    """
    node = at(tree, path)
    assert isinstance(node, Cut)
    before, after = node.children[first : first + 2]
    if isinstance(before, Leaf) or isinstance(after, Leaf):
        return None
    border = count if back else len(before.children) - count
    whole = after.children if back else before.children
    if not 0 < border < len(whole):
        return None
    if back:
        left, right = (*before.children, *after.children[:border]), after.children[border:]
    else:
        left, right = before.children[:border], (*before.children[border:], *after.children)
    pair = [_holding(before, left), _holding(after, right)]
    row = (*node.children[:first], *pair, *node.children[first + 2 :])
    return replaced(tree, path, (Cut(node.kind, node.batch, node.groups, row),))


def _holding(like: Cut, children: tuple[Node, ...]) -> Node:
    """A cut with other children, of whatever batches."""
    inner = like.batch // like.groups
    made = cut_like(like, [fitted(child, inner) for child in children])
    assert made is not None
    return made


def split(tree: Node, path: Path, border: int) -> Node | None:
    """Two cuts in place of one below the root."""
    node = at(tree, path)
    assert isinstance(node, Cut)
    parts = _holding(node, node.children[:border]), _holding(node, node.children[border:])
    return replaced(tree, path, parts)


def change(tree: Node, path: Path) -> Node | None:
    """A cut of the other kind."""
    node = at(tree, path)
    assert isinstance(node, Cut)
    kind = KINDS[1 - KINDS.index(node.kind)]
    return replaced(tree, path, (Cut(kind, node.batch, node.groups, node.children),))


def wide_step(tree: Node, network: SetNetwork, random: Random) -> Node | None:
    """One step at random on a place at random; ``None`` where it does not apply there."""
    which = random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
    if which in OPERATORS:
        return operator_step(tree, network, random, OPERATORS[which])
    cuts = places(tree)[1]
    if not cuts:
        return None
    path, node = random.choice(cuts)
    count = len(node.children)
    if which == "group few":
        return _short_group(tree, path, node, random)
    if which == "split":
        return split(tree, path, random.randrange(1, count)) if path and count > 1 else None
    if which == "change":
        return change(tree, path) if path else None
    if random.random() < AT_ROOT:
        path, node = cuts[0]
    if len(node.children) < 2:
        return None
    first = random.randrange(len(node.children) - 1)
    if which == "shift":
        return shift(tree, path, first, _longer(1, 4, FURTHER, random), back=random.random() < 0.5)
    pair = node.children[first : first + 2]
    if sum(node_of_pair.mask.bit_count() for node_of_pair in pair) > LARGEST:
        return None
    like = [node_of_pair for node_of_pair in pair if isinstance(node_of_pair, Cut)]
    return merge(tree, path, first, random.choice(like)) if like else None


def _short_group(tree: Node, path: Path, node: Cut, random: Random) -> Node | None:
    """OP3 on a short span."""
    count = len(node.children)
    length = _longer(2, count - 1, LONGER, random)
    if length >= count:
        return None
    begin = random.randrange(count - length + 1)
    groups = random.choice(divisors(node.batch // node.groups))
    return group(tree, path, begin, begin + length, random.choice(KINDS), groups)


def _longer(least: int, most: int, chance: float, random: Random) -> int:
    """A number that is often the least."""
    length = least
    while length < most and random.random() < chance:
        length += 1
    return length
