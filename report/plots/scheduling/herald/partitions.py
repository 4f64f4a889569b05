"""Latency and energy of every partition, with the Pareto front (Herald, figure 11)."""

from __future__ import annotations

from pathlib import Path

from tilewright.report.pareto import pareto_front
from tilewright.report.plots.style import measured, write_figure
from tilewright.report.records.scheduling.herald.document import CodesignDocument, PartitionPointRecord


def draw_partitions(document: CodesignDocument, seconds: float, path: Path) -> None:
    """Draw to a PNG or SVG file.

    Parameters
    ----------
    seconds : of one cycle
    """
    from matplotlib.figure import Figure

    def at(point: PartitionPointRecord) -> tuple[float, float]:
        return point.cycles * seconds, point.energy_pj * 1e-12

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    quick = [at(point) for point in document.points if not point.scheduled]
    exact = [at(point) for point in document.points if point.scheduled]
    for points, label, colour in (
        (quick, "Herald's schedule", "tab:gray"),
        (exact, "scheduled with proof", "tab:blue"),
    ):
        if points:
            latencies, energies = zip(*points, strict=True)
            axes.scatter(latencies, energies, s=14, label=label, color=colour, alpha=0.7)
    front = pareto_front([*quick, *exact])
    axes.step(*zip(*front, strict=True), where="post", color="tab:orange", label="Pareto front", linewidth=1)
    if document.points:
        best = at(min(document.points, key=lambda point: point.value))
        axes.scatter(*best, marker="*", s=140, color="tab:red", label=f"best {document.objective}", zorder=3)
    measured(axes.xaxis, "latency", "s")
    measured(axes.yaxis, "energy", "J")
    flows = " + ".join(document.dataflows)
    axes.set_title(f"{document.workload}, {document.accelerator_class}: {flows}", fontsize=10)
    axes.legend(fontsize=8)
    write_figure(figure, path, 150)
