"""A picture of a network: its graph, and the channel-activation ratios of its layers (Herald, figure 1)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.report.plots.style import check_plot_file, write_figure
from tilewright.report.text.quantities import si_text
from tilewright.workloads.network import Network
from tilewright.workloads.shape_ratio import channel_activation_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path as Outline

Point = tuple[float, float]

_FEW = 40
"""Most layers whose names can be read in the picture."""
_DEPTHS = 60
"""Most depths that stand one above the other; deeper graphs continue in further columns."""


def plot_network(network: Network, path: Path) -> None:
    """Draw a network into a file.

    Parameters
    ----------
    path : ends in ``.png``, ``.svg`` or ``.pdf``

    Raises
    ------
    InputError : for another ending, a place that cannot be written, and without matplotlib
    OutputError : where writing fails
    """
    check_plot_file(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ratios = {layer.name: channel_activation_ratio(network, layer) for layer in network.mac_layers}
    figure = Figure(figsize=(13, 8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    _graph(figure.add_subplot(grid[:, 0]), network, ratios)
    if ratios:
        _course(figure.add_subplot(grid[0, 1]), [*ratios.values()])
        _distribution(figure.add_subplot(grid[1, 1]), [*ratios.values()])
    figure.suptitle(
        f"{network.name}, batch {network.batch}: {len(network)} layers, {si_text(network.macs, 'MAC')}, "
        f"{si_text(network.parameters)} parameters"
    )
    write_figure(figure, path, 130)


def _graph(axes: Axes, network: Network, ratios: dict[str, float]) -> None:
    """The layers from top to bottom, in several columns where there are many; area grows with the work."""
    from matplotlib.collections import PathCollection

    place = positions(network)
    axes.set_axis_off()
    axes.set_title("graph (area: multiply-accumulates; colour: channels / rows of the input)", fontsize=9)
    curves = [_curve(place[a], place[b]) for a, b in network.graph.edges]
    axes.add_collection(PathCollection(curves, facecolors="none", edgecolors="0.6", linewidths=0.6, zorder=0))
    others = [place[name] for name in place if name not in ratios]
    if others:
        axes.scatter([x for x, _ in others], [y for _, y in others], s=8, c="0.75", zorder=1)
    if ratios:
        most = max(network.layer(name).operator.macs for name in ratios)
        largest = 180 * min(1.0, 80 / len(network))
        sizes = [8 + largest * network.layer(name).operator.macs / most for name in ratios]
        drawn = axes.scatter(
            [place[name][0] for name in ratios],
            [place[name][1] for name in ratios],
            s=sizes,
            cmap="viridis",
            zorder=2,
            c=[math.log10(ratio) for ratio in ratios.values()],
        )
        bar = axes.figure.colorbar(drawn, ax=axes, location="bottom", shrink=0.6, pad=0.01)
        bar.set_label("log10 of the channel-activation ratio", fontsize=8)
    if len(network) <= _FEW:
        for name, (x, y) in place.items():
            axes.annotate(name, (x, y), xytext=(9, 0), textcoords="offset points", fontsize=6, va="center")
    axes.margins(0.08, 0.02)


def _curve(start: Point, end: Point) -> Outline:
    """A line to the next depth; what skips depths bends to the left, so that it can be seen beside them."""
    from matplotlib.path import Path as Outline

    skips = abs(end[1] - start[1]) > 1 and start[0] == end[0]
    bend = 0.12 + 0.05 * math.log2(abs(end[1] - start[1])) if skips else 0.0
    middle = ((start[0] + end[0]) / 2 - 2 * bend, (start[1] + end[1]) / 2)
    return Outline([start, middle, end], [Outline.MOVETO, Outline.CURVE3, Outline.CURVE3])


def positions(network: Network) -> dict[str, Point]:
    """Where each layer stands: its depth downwards, layers of one depth side by side, in columns.

    Layers of one depth are in the order of the middles of what they read.
    """
    graph = network.graph
    depth: dict[str, int] = {}
    for layer in network.layers:
        depth[layer.name] = 1 + max((depth[name] for name in graph.predecessors(layer.name)), default=-1)
    names_at: dict[int, list[str]] = {}
    for name, level in depth.items():
        names_at.setdefault(level, []).append(name)
    widest = max(map(len, names_at.values()))
    columns = -(-len(names_at) // _DEPTHS)
    rows = -(-len(names_at) // columns)
    place: dict[str, Point] = {}
    across: dict[str, float] = {}
    for level, names in sorted(names_at.items()):
        column, row = divmod(level, rows)
        middles = {name: _mean([across[producer] for producer in graph.predecessors(name)]) for name in names}
        for i, name in enumerate(sorted(names, key=middles.__getitem__)):
            across[name] = (i - (len(names) - 1) / 2) / widest
            place[name] = (column * 1.3 + across[name], -float(row))
    return place


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _course(axes: Axes, ratios: Sequence[float]) -> None:
    """The ratio from layer to layer, as Herald's figure 1 draws it for two networks."""
    few = len(ratios) < 200
    axes.plot(
        range(1, len(ratios) + 1),
        ratios,
        marker=".",
        markersize=6 if few else 2,
        linewidth=0.8 if few else 0.0,
    )
    axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer, in order", fontsize=8)
    axes.set_ylabel("input channels / input rows", fontsize=8)
    axes.set_title("channel-activation ratio through the network", fontsize=9)
    axes.grid(visible=True, which="major", linewidth=0.3)


def _distribution(axes: Axes, ratios: Sequence[float]) -> None:
    """How many layers have which ratio, with the three figures of Herald's table I."""
    low, high = math.floor(math.log2(min(ratios))), math.ceil(math.log2(max(ratios)))
    edges = [2.0**power for power in range(low, max(high, low + 1) + 1)]
    axes.hist(ratios, bins=edges, color="0.6", edgecolor="white", linewidth=0.5)
    axes.set_xscale("log")
    axes.locator_params(axis="y", integer=True)
    median = statistics.median(ratios)
    axes.axvline(median, color="C3", linewidth=1)
    axes.set_xlabel("input channels / input rows", fontsize=8)
    axes.set_ylabel("layers", fontsize=8)
    axes.set_title(f"min {min(ratios):.4g}, median {median:.4g}, max {max(ratios):.4g}", fontsize=9)
