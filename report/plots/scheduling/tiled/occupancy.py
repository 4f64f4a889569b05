"""The buffers of a plan over time: the fullest and the mean."""

from __future__ import annotations

from pathlib import Path

from tilewright.report.plots.style import PALETTE, measured, write_figure
from tilewright.report.records.scheduling.tiled.evaluation import JudgedPlan
from tilewright.report.records.scheduling.tiled.timeline import held_bytes

_COLUMNS = 800
_KIBIBYTE = 1024


def draw_occupancy(plan: JudgedPlan, path: Path) -> None:
    """Draw to a PNG, PDF or SVG file."""
    from matplotlib.figure import Figure

    assert plan.answer is not None
    assert plan.evaluation is not None
    machine = plan.problem.machine
    moments, held = held_bytes(plan.answer, machine, plan.evaluation, _COLUMNS)
    times = moments / (machine.clock_mhz * 1e6)
    figure = Figure(figsize=(11, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(times, held.max(axis=0) / _KIBIBYTE, color=PALETTE[0], linewidth=2.5, label="fullest buffer")
    axes.plot(times, held.mean(axis=0) / _KIBIBYTE, color=PALETTE[2], linewidth=1, label="mean")
    axes.axhline(machine.engine.buffer_bytes / _KIBIBYTE, color=PALETTE[1], linestyle="--", label="capacity")
    axes.set_xlim(0, float(times[-1]))
    axes.set_ylim(bottom=0)
    measured(axes.xaxis, "time", "s")
    axes.set_ylabel("buffer in KiB")
    figure.legend(loc="outside right upper", fontsize=8)
    peak = int(plan.evaluation.peak_bytes.max()) / _KIBIBYTE
    axes.set_title(f"{plan.problem.network.name} on {machine.name}: at most {peak:.4g} KiB", fontsize=10)
    write_figure(figure, path, 150)
