"""Where the energy goes, per level and tensor, side by side for the best mapping of every method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.benchmarks.plots.selection import best_runs, one_problem, problem_title
from tilewright.benchmarks.rows import Row
from tilewright.benchmarks.store import Store
from tilewright.report.plots import style
from tilewright.report.records.mapping.breakdown import EnergyPart, energy_parts
from tilewright.report.records.mapping.document import MetricsRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PER_ROW = 4


def draw(store: Store, rows: Sequence[Row]) -> Figure:
    """A panel per method: bars are components, their pieces tensors."""
    best = best_runs(one_problem(rows, "energy"))
    cells = {cell.key: cell for cell in store.cells()}
    panels: list[tuple[str, list[EnergyPart]]] = []
    for row in best:
        cell = cells[row.key]
        problem = store.problem(cell.problem)
        engine, operator = problem.arch.build("store"), problem.operator.build("store")
        metrics = MetricsRecord.model_validate(cell.answer.metrics)
        panels.append((row.method, energy_parts(metrics, engine, operator)))
    return panels_figure(panels, problem_title(best[0]))


def panels_figure(panels: Sequence[tuple[str, Sequence[EnergyPart]]], title: str) -> Figure:
    """One panel per title and breakdown, all on one scale.

    Parameters
    ----------
    panels : titles with breakdowns
    title : what they have in common
    """
    from matplotlib.patches import Patch

    components = list(dict.fromkeys(part.component for _, parts in panels for part in parts))
    tensors = list(dict.fromkeys(part.tensor for _, parts in panels for part in parts if part.tensor))
    colours = style.tensor_colours(tensors)
    scale, unit = _unit(max(sum(p.picojoules for p in parts) for _, parts in panels))
    columns = min(_PER_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    height = 0.9 + rows * (0.55 + 0.24 * len(components))
    figure, axes = style.canvas(columns, height, rows, sharey=True, sharex=True)
    for axis, (name, parts) in zip(axes, panels, strict=False):
        _panel(axis, parts, components, colours, scale)
        axis.set_title(f"{name}: {scale * sum(p.picojoules for p in parts):.3g} {unit}")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(panels) - columns) : len(panels)]:
        axis.set_xlabel(f"energy [{unit}]")
        axis.tick_params(labelbottom=True)
    handles = [Patch(color=colours[name], label=name) for name in tensors]
    handles.append(Patch(color=style.SHARED, label="not by tensor"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.suptitle(title)
    return figure


def _panel(
    axis: Axes, parts: Sequence[EnergyPart], components: Sequence[str], colours: dict[str, str], scale: float
) -> None:
    ends = dict.fromkeys(components, 0.0)
    for part in parts:
        size = scale * part.picojoules
        place = components.index(part.component)
        axis.barh(place, size, left=ends[part.component], height=0.7, color=colours[part.tensor])
        ends[part.component] += size
    axis.set_yticks(range(len(components)), components)
    axis.set_ylim(len(components) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")


def _unit(picojoules: float) -> tuple[float, str]:
    """The factor and the name of the unit in which a number reads well."""
    for factor, unit in ((1e-12, "J"), (1e-9, "mJ"), (1e-6, "µJ"), (1e-3, "nJ")):
        if picojoules * factor >= 1:
            return factor, unit
    return 1.0, "pJ"
