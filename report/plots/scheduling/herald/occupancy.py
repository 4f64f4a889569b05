"""The shared memory over time: bytes that running layers and fetches take."""

from __future__ import annotations

from pathlib import Path

from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.report.plots.style import measured, write_figure

_MEBIBYTE = 2**20


def draw_occupancy(
    problem: SchedulingProblem, evaluation: ScheduleEvaluation, seconds: float, path: Path
) -> None:
    """Draw to a PNG or SVG file.

    Parameters
    ----------
    seconds : of one cycle
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    axes = figure.add_subplot()
    times = [cycle * seconds for cycle, _ in evaluation.occupancy]
    used = [amount / _MEBIBYTE for _, amount in evaluation.occupancy]
    axes.fill_between(times, used, step="post", alpha=0.6, color="tab:blue", linewidth=1, label="in use")
    if problem.memory is not None:
        axes.axhline(problem.memory / _MEBIBYTE, color="tab:red", linestyle="--", label="capacity")
    figure.legend(loc="outside right upper", fontsize=8)
    axes.set_xlim(0, evaluation.makespan * seconds)
    axes.set_ylim(bottom=0)
    measured(axes.xaxis, "time", "s")
    axes.set_ylabel("shared memory in MiB")
    peak = evaluation.peak_memory / _MEBIBYTE
    axes.set_title(f"{problem.name}: at most {peak:.4g} MiB in use", fontsize=10)
    write_figure(figure, path, 150)
