"""Execution time over the number of engines, all PEs and buffers together being the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from studies.papers.atomic.cells import OPTIONS, SIZES, label, rows_of
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.pictures import legend, lines
from studies.papers.study import Study, number
from studies.tiled_figures import GRIDS
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ON_4X4 = ("VGG-19", "ResNet-152", "NasNet")


def series_of(study: Study, name: str, columns: Sequence[str]) -> list[Row]:
    """Cycles by network along a table's columns."""
    return [
        {"network": label(row["network"]), **{column: number(row[column]) for column in columns}}
        for row in rows_of(study, name)
    ]


def measure(study: Study) -> Data:
    """Cycles by network and grid."""
    return {"rows": series_of(study, "figure12", list(GRIDS))}


def judge(data: Data) -> Verdict:
    """U-shaped curves; three networks are fastest on 4x4."""
    names = list(GRIDS)
    compared: list[Compared] = []
    for row in data["rows"]:
        best = min(names, key=lambda name: row[name])
        inside = best not in (names[0], names[-1])
        compared.append(Statement(f"{row['network']}: the curve is U-shaped", f"least at {best}", inside))
        if row["network"] in ON_4X4:
            compared.append(Statement(f"{row['network']} is fastest on 4x4", f"on {best}", best == "4x4"))
    return Verdict(
        compared,
        differs="Links keep their width, so that few engines have few of them; no measurement here changes "
        "that alone.",
        needed="The paper's links of every grid would be needed.",
    )


def curves(data: Data, columns: Sequence[str], axis_label: str) -> Figure:
    """A line per network, relative to its least."""
    figure, axes = canvas(1, 2.8)
    series = {
        row["network"]: [row[column] / min(row[name] for name in columns) for column in columns]
        for row in data["rows"]
    }
    lines(axes[0], list(range(len(columns))), series)
    axes[0].set_xticks(range(len(columns)), columns)
    axes[0].set_xlabel(axis_label)
    axes[0].set_ylabel("cycles over the least")
    legend(axes[0], 4)
    return figure


def drawn(columns: Sequence[str], axis_label: str) -> Callable[[Data], Figure]:
    """The picture of a scaling figure."""
    return lambda data: curves(data, columns, axis_label)


FIGURE = PaperFigure(
    title="Scaling the number of engines",
    claim="Curves are U-shaped; VGG-19, ResNet-152 and NasNet are fastest on 4 x 4 engines.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=drawn(list(GRIDS), "engines at 16,384 PEs and 8 MB"),
    options=OPTIONS,
    shown=("rows",),
)
