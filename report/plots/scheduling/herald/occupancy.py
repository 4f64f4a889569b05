"""The shared memory over time: bytes that running layers and fetches take."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.report.plots.style import write_figure

_MEGABYTE = 2**20


def draw_occupancy(
    problem: SchedulingProblem, evaluation: ScheduleEvaluation, milliseconds: float, path: Path
) -> None:
    """Draw to a PNG or SVG file.

    Parameters
    ----------
    milliseconds : of one cycle
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    axes = figure.add_subplot()
    times = [cycle * milliseconds for cycle, _ in evaluation.occupancy]
    used = [amount / _MEGABYTE for _, amount in evaluation.occupancy]
    axes.fill_between(times, used, step="post", alpha=0.6, color="tab:blue", linewidth=0)
    if problem.memory is not None:
        axes.axhline(problem.memory / _MEGABYTE, color="tab:red", linestyle="--", label="capacity")
        figure.legend(loc="outside right upper", fontsize=8)
    axes.set_xlim(0, evaluation.makespan * milliseconds)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time in ms")
    axes.set_ylabel("shared memory in MiB")
    axes.set_title(
        f"{problem.name}: at most {evaluation.peak_memory / _MEGABYTE:.2f} MiB in use", fontsize=10
    )
    write_figure(figure, path, 150)
