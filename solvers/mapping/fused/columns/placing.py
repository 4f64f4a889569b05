"""The fused mapping that a tree and its layers' columns stand for."""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.solvers.mapping.fused.columns.columns import Column, Columns
from tilewright.solvers.mapping.fused.columns.tree_rows import LayerRow, TreeRow


def placed_tree(tree: TreeRow, chosen: dict[str, tuple[LayerRow, Column]], columns: Columns) -> Branch:
    """A tree with residents and the mappings of all turns.

    Parameters
    ----------
    tree, chosen : the tree, and per layer its row and its column
    columns : which know the mappings
    """
    result = tree.tree
    outermost = columns.rows.engine.levels[0].name
    for layer, (row, column) in chosen.items():
        mappings = [
            (kind.sizes, columns.front(kind, column.starts).picks[at].mapping())
            for kind, at in zip(row.kinds, column.picks, strict=True)
        ]
        result = _with_leaf(result, Leaf(layer, mappings[0][1], tuple(mappings[1:])))
        for way in column.ways:
            if way.store is not None and way.place is not None:
                result = _with_store(result, way.store, way.place.sequences, way.place.loops)
                copy = SharedStore(layer, way.store.tensor, outermost)
                result = replace(result, nodes=(copy, *result.nodes))
    return result


def _with_leaf(branch: Branch, leaf: Leaf) -> Branch:
    children = tuple(
        (leaf if child.layer == leaf.layer else child) if isinstance(child, Leaf) else _with_leaf(child, leaf)
        for child in branch.children
    )
    return replace(branch, children=children)


def _with_store(branch: Branch, store: SharedStore, sequences: int, loops: int) -> Branch:
    """A branch with one more store on the way to the store's layer.

    Parameters
    ----------
    branch, store : the branch, and the store
    sequences, loops : within so many sequences of the branch, and behind so many loops of the innermost
    """
    if sequences:
        children = tuple(
            child
            if isinstance(child, Leaf) or store.layer not in child.layers()
            else _with_store(child, store, sequences - 1, loops)
            for child in branch.children
        )
        return replace(branch, children=children)
    behind = [0, *(at for at, node in enumerate(branch.nodes, 1) if isinstance(node, SharedLoop))][loops]
    return replace(branch, nodes=(*branch.nodes[:behind], store, *branch.nodes[behind:]))
