"""What a search knows of a fused tree before all of it is decided."""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.mapping.fused.tree import RETAINED, Branch, SharedStore


def without_inner_loops(tree: Branch, root: bool) -> Branch:
    """What a search knows of a tree before loops of sequences inside others are decided."""
    nodes = tuple(node for node in tree.nodes if root or isinstance(node, SharedStore))
    children = (
        without_inner_loops(child, False) if isinstance(child, Branch) else child for child in tree.children
    )
    return Branch(nodes, tuple(children))


def with_open_halos(tree: Branch) -> Branch:
    """What a search knows of a tree before halos are decided."""
    nodes = (replace(node, halo=RETAINED) if isinstance(node, SharedStore) else node for node in tree.nodes)
    children = (with_open_halos(child) if isinstance(child, Branch) else child for child in tree.children)
    return Branch(tuple(nodes), tuple(children))
