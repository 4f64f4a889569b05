"""The spatial-temporal graph of a tree (section 3.1.1) as text: a line per tile, time from left to right."""

from __future__ import annotations

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.expansion import runs_of
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Leaf

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def spatial_temporal_graph(
    tree: NodeCost, dataflow: DataFlow, network: SetNetwork, columns: int = 64
) -> list[str]:
    """Lines of the graph, then its legend.

    A column is an equal part of the whole time and shows what runs at its middle; a dot is an idle tile.

    Parameters
    ----------
    tree : the root with its costs
    dataflow : says when each leaf runs
    network : gives the layers' names
    columns : characters for the whole time
    """
    runs = runs_of(tree, dataflow)
    whole = max(run.end for run in runs)
    order: dict[int, str] = {}
    grid = [["."] * columns for _ in range(tree.tiles)]
    for run in runs:
        assert isinstance(run.cost.node, Leaf)
        layer = run.cost.node.layer
        letter = order.setdefault(layer, LETTERS[len(order) % len(LETTERS)])
        for column in range(columns):
            middle = whole * (2 * column + 1) / (2 * columns)
            if run.begin <= middle < run.end:
                for tile in range(run.cost.first, run.cost.first + run.cost.tiles):
                    grid[tile][column] = letter
    width = len(str(tree.tiles - 1))
    lines = [f"tile {tile:>{width}} {''.join(row)}" for tile, row in enumerate(grid)]
    names = [f"{letter} {network.layers[layer].name}" for layer, letter in order.items()]
    return [*lines, f"0 to {whole} cycles, by leaves alone", "", ", ".join(names)]
