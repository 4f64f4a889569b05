"""Gantt chart of a schedule: one row per sub-accelerator, one colour per run of a network."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.report.plots.style import measured, readable_on, write_figure
from tilewright.report.text.quantities import si_text

_LETTER = 0.007  # share of the makespan that one letter of a layer's name takes


def draw_gantt(problem: SchedulingProblem, schedule: Schedule, seconds: float, path: Path) -> None:
    """Draw to a PNG or SVG file.

    Parameters
    ----------
    seconds : of one cycle
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    runs = list(problem.instances)
    shades = colormaps["tab20"].resampled(20)
    colours = {run: shades(index % 20) for index, run in enumerate(runs)}
    figure = Figure(figsize=(11, 1.6 + 0.8 * len(problem.engines)), layout="constrained")
    axes = figure.add_subplot()
    makespan = schedule.makespan
    for placement in schedule.placements:
        task, row = problem.tasks[placement.task], placement.option.engine
        axes.barh(
            row,
            placement.option.cycles * seconds,
            left=placement.start * seconds,
            height=0.7,
            color=colours[task.instance],
            edgecolor="white",
            linewidth=0.3,
        )
        if placement.option.cycles > _LETTER * len(task.layer) * makespan:
            middle = (placement.start + placement.option.cycles / 2) * seconds
            ink = readable_on(colours[task.instance])
            axes.text(middle, row, task.layer, ha="center", va="center", fontsize=7, clip_on=True, color=ink)
    axes.set_yticks(range(len(problem.engines)), problem.engines)
    axes.invert_yaxis()
    axes.set_xlim(0, makespan * seconds)
    measured(axes.xaxis, "time", "s")
    axes.set_title(f"{problem.name}: {si_text(makespan * seconds, 's')}", fontsize=10)
    handles = [Patch(color=colours[run], label=run) for run in runs]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(runs)), fontsize=7)
    write_figure(figure, path, 150)
