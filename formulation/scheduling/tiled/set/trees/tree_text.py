"""Trees as text, as SET's released program prints them.

One node a line, children one tab deeper than their parent: ``T batch/groups`` or ``S batch/groups`` for cuts,
``layer batch`` for leaves.  A cut whose leaves run in row stripes ends with their number: ``S 4/4/8``.

    T 4/1
        S 4/2
                conv1 2
                pool1 2
        fc 4
"""

from __future__ import annotations

import re
from typing import Literal, cast

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.tree import (
    Cut,
    InvalidTreeError,
    Leaf,
    Node,
    check_tree,
)
from tilewright.foundation.errors import unknown_name

_NUMBER = "([0-9]{1,9})"
_CUT = re.compile(rf"([ST])\s+{_NUMBER}/{_NUMBER}(?:/{_NUMBER})?")
_LEAF = re.compile(rf"(\S+)\s+{_NUMBER}")

DEEPEST = 200
"""Cuts above a leaf at most; deeper trees are walked by recursion as well."""


def format_tree(tree: Node, network: SetNetwork) -> str:
    """The text of a tree, with a line end after every node."""
    lines: list[str] = []

    def write(node: Node, depth: int) -> None:
        if isinstance(node, Leaf):
            lines.append(f"{'	' * depth}{network.layers[node.layer].name} {node.batch}\n")
            return
        lines.append(f"{'	' * depth}{node.written}\n")
        for child in node.children:
            write(child, depth + 1)

    write(tree, 0)
    return "".join(lines)


def parse_tree(text: str, network: SetNetwork, batch: int | None = None) -> Node:
    """A tree from its text; four spaces count as a tab, empty lines as nothing.

    Parameters
    ----------
    batch : what the root must have; the text's own where none is given

    Raises
    ------
    InvalidTreeError : naming the line that cannot be read, or the formula that is broken
    """
    rows: list[tuple[int, int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        body = line.replace("    ", "\t")
        bare = body.lstrip("\t")
        if bare.strip():
            rows.append((number, len(body) - len(bare), bare.strip()))
    if not rows:
        raise InvalidTreeError("expected a tree, got an empty text")
    at = 0

    def read(depth: int) -> Node:
        nonlocal at
        number, indent, body = rows[at]
        if depth > DEEPEST:
            raise InvalidTreeError(f"line {number}: more than {DEEPEST} cuts deep")
        if indent != depth:
            raise InvalidTreeError(f"line {number}: indented {indent} times, expected {depth}")
        at += 1
        cut = _CUT.fullmatch(body)
        if cut is None:
            leaf = _LEAF.fullmatch(body)
            if leaf is None:
                raise InvalidTreeError(f"line {number}: expected 'T b/g', 'S b/g' or 'layer b', got {body!r}")
            if leaf[1] not in network.index:
                raise InvalidTreeError(f"line {number}: {unknown_name(leaf[1], network.index)}")
            return Leaf(network.index[leaf[1]], int(leaf[2]))
        children = []
        while at < len(rows) and rows[at][1] > depth:
            children.append(read(depth + 1))
        kind = cast(Literal["S", "T"], cut[1])
        return Cut(kind, int(cut[2]), int(cut[3]), tuple(children), int(cut[4] or 1))

    tree = read(0)
    if at < len(rows):
        raise InvalidTreeError(f"line {rows[at][0]}: a second root")
    check_tree(tree, network, tree.batch if batch is None else batch)
    return tree
