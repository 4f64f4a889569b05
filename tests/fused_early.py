"""What a search knows of a fused tree before all of it is decided."""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, SharedLoop, SharedStore


def without_inner_loops(tree: Branch, root: bool) -> Branch:
    """What a search knows of a tree before loops of sequences inside others are decided."""
    nodes = tuple(node for node in tree.nodes if root or isinstance(node, SharedStore))
    children = (
        without_inner_loops(child, False) if isinstance(child, Branch) else child for child in tree.children
    )
    return Branch(nodes, tuple(children))


def unplaced(tree: Branch) -> Branch:
    """What a search knows of a tree before places of homes are decided."""
    loops = tuple(node for node in tree.nodes if isinstance(node, SharedLoop))
    homes = tuple(replace(node, halo=RETAINED) for node in tree.nodes if isinstance(node, SharedStore))
    children = (unplaced(child) if isinstance(child, Branch) else child for child in tree.children)
    return Branch((*loops, *homes), tuple(children))
