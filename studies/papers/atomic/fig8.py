"""Latency of four ways of orchestration, batch 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.atomic.cells import OPTIONS, SIZES, bounds_of, label, rows_of
from studies.papers.figure import Compared, Data, PaperFigure, Row, Span, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study, number
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("ls", "cnn-p", "il-pipe", "rammer", "printed", "atomic")


def contest(study: Study, name: str, batch: int, unit: float, bound: str) -> list[Row]:
    """Methods of a table of the manual with the bound beside them.

    Parameters
    ----------
    name, batch : of the table
    unit : of its numbers
    bound : ``cycles`` or ``energy``
    """
    rows = rows_of(study, name)
    bounds = bounds_of(study, name, rows, batch)
    return [
        {
            "network": label(row["network"]),
            **{method: number(row[method]) * unit for method in METHODS},
            "bound": own[bound],
        }
        for row, own in zip(rows, bounds, strict=True)
    ]


def measure(study: Study) -> Data:
    """Cycles by network and method."""
    return {"rows": contest(study, "figure8", 1, 1.0, "cycles")}


def ratios(data: Data, slow: str, fast: str) -> list[float]:
    """How many times a method's figure is another's, by network."""
    return [row[slow] / row[fast] for row in data["rows"]]


def span(what: str, printed: tuple[float, float], ours: list[float]) -> Span:
    """A printed range beside ours."""
    return Span(what, printed[0], min(ours), "{:.2f}", printed[1], max(ours))


def proven(data: Data) -> str:
    """How far the published pipeline and our best are from what is proven."""
    best = [min(row[method] for method in METHODS) / row["bound"] for row in data["rows"]]
    printed = [row["printed"] / row["bound"] for row in data["rows"]]
    return (
        f"No plan has less than the bound: the pipeline as printed takes {min(printed):.2f} to "
        f"{max(printed):.2f} times as "
        f"much, the best plan here {min(best):.2f} to {max(best):.2f} times."
    )


def judge(data: Data) -> Verdict:
    """1.45 to 2.30 times as fast as CNN-P and LS, 1.42 to 3.78 as IL-Pipe."""
    compared: list[Compared] = [
        span("atomic over CNN-P and LS", (1.45, 2.30), ratios(data, "ls", "atomic")),
        span("atomic over IL-Pipe", (1.42, 3.78), ratios(data, "il-pipe", "atomic")),
    ]
    own = ratios(data, "ls", "printed")
    return Verdict(
        compared,
        differs="This LS gives every layer the size of atoms that suits it, while the paper's cuts each "
        "layer evenly over all "
        "engines (figure 2 measures what that costs); against the same LS the pipeline as printed is "
        f"{min(own):.2f} to "
        f"{max(own):.2f} times as fast.",
        needed="Link widths and sizes of the baselines' atoms would be needed.",
        best=proven(data),
    )


def draw(data: Data) -> Figure:
    """Bars by network, and the bound."""
    figure, axes = canvas(1, 3.0)
    names = (*METHODS, "bound")
    series = {name: [row[name] / 1e6 for row in data["rows"]] for name in names}
    grouped_bars(axes[0], [row["network"] for row in data["rows"]], series)
    axes[0].set_ylabel("Mcycles")
    legend(axes[0], len(names))
    return figure


FIGURE = PaperFigure(
    title="Latency, batch 1",
    claim="Atomic Dataflow is 1.45 to 2.30 times as fast as CNN-P (the same as LS here), 1.42 to 3.78 "
    "times as IL-Pipe.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=draw,
    options=OPTIONS,
)
