"""The spatial-temporal graph of a resource allocation tree (SET, section 3.1.1): layers as boxes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.expansion import runs_of
from tilewright.formulation.scheduling.tiled.set.trees.node_cost import NodeCost
from tilewright.formulation.scheduling.tiled.set.trees.tree import Leaf
from tilewright.report.plots.style import layer_colour, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BOXES = 4000
"""Boxes beyond that have no borders."""

MOST_NAMES = 24
"""Layers that a legend names."""

LEAST_SHARE = 0.03
"""Part of the whole time from which on a box is wide enough for its name."""


def draw_spatial_temporal_graph(tree: NodeCost, form: ClosedForm, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file: a box for every run of a leaf, as wide as it takes by the closed form.

    Boxes that are wide enough say which layer and samples they are, as ``conv1 [0, 1]``.
    """
    save(lambda: _figure(tree, form), path)


def _figure(tree: NodeCost, form: ClosedForm) -> Figure:
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    runs = runs_of(tree, form.dataflow)
    layers = form.network.layers
    end = max(run.end for run in runs)
    scale = 1 / (form.machine.clock_mhz * 1000)
    figure = Figure(figsize=(11, 1.8 + min(7.0, 0.2 * tree.tiles)), layout="constrained")
    axes = figure.add_subplot()
    boxes, shades, seen = [], [], {}
    for run in runs:
        node = run.cost.node
        assert isinstance(node, Leaf)
        left, wide = run.begin * scale, (run.end - run.begin) * scale
        boxes.append(Rectangle((left, run.cost.first - 0.5), wide, run.cost.tiles))
        shades.append(layer_colour(node.layer))
        seen[layers[node.layer].name] = layer_colour(node.layer)
        if run.end - run.begin >= LEAST_SHARE * end:
            samples = f" [{run.sample}, {run.sample + node.batch - 1}]" if tree.node.batch > 1 else ""
            middle = run.cost.first - 0.5 + run.cost.tiles / 2
            axes.text(
                left + wide / 2,
                middle,
                layers[node.layer].name + samples,
                ha="center",
                va="center",
                fontsize=6,
                rotation=90,
                clip_on=True,
            )
    border = 0.4 if len(boxes) <= MOST_BOXES else 0.0
    axes.add_collection(PatchCollection(boxes, facecolors=shades, edgecolors="white", linewidths=border))
    axes.set_xlim(0, end * scale)
    axes.set_ylim(-0.5, tree.tiles - 0.5)
    axes.set_xlabel("time in ms, by leaves alone")
    axes.set_ylabel("tile")
    axes.set_title(f"{form.network.name} on {form.machine.name}, batch {tree.node.batch}", fontsize=10)
    if len(seen) <= MOST_NAMES:
        handles = [Patch(color=shade, label=name) for name, shade in seen.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(8, len(seen)), fontsize=6)
    return figure
