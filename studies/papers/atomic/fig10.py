"""What each stage of the pipeline gains, batch 1."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from studies.papers.atomic.cells import OPTIONS, SIZES, bounds_of, label, rows_of
from studies.papers.atomic.fig8 import span
from studies.papers.figure import Data, PaperFigure, Row, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study, number
from studies.tiled_figures import STAGES
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(study: Study) -> Data:
    """Cycles after each stage."""
    rows = rows_of(study, "figure10")
    bounds = bounds_of(study, "figure10", rows, 1)
    return {
        "rows": [
            Row(
                {
                    "network": label(row["network"]),
                    **{name: number(row[name]) for name in STAGES},
                    "bound": own["cycles"],
                }
            )
            for row, own in zip(rows, bounds, strict=True)
        ]
    }


def judge(data: Data) -> Verdict:
    """Sizes 1.06 to 1.21, order 1.17 to 1.42, reuse 1.07 to 1.17."""
    names = list(STAGES)
    gains = [[row[a] / row[b] for row in data["rows"]] for a, b in itertools.pairwise(names)]
    compared = (
        span("sizes by annealing", (1.06, 1.21), gains[0]),
        span("order by rules", (1.17, 1.42), gains[1]),
        span("mapping and reuse", (1.07, 1.17), gains[2]),
    )
    return Verdict(
        compared,
        differs="The first stage starts from shares of the layers, which the paper's baseline does not "
        "have: annealing towards "
        f"equal cycles, the only change, makes these {1 / max(gains[0]):.2f} to {1 / min(gains[0]):.2f} "
        "times as slow.",
        needed="The paper's starting plans would be needed.",
        best="; ".join(
            f"{row['network']}: {row[names[-1]] / row['bound']:.2f} times the bound after all stages"
            for row in data["rows"]
        )
        + ".",
    )


def draw(data: Data) -> Figure:
    """Bars of speed over the first stage."""
    figure, axes = canvas(1, 2.8)
    series = {name: [row[name] / 1e6 for row in data["rows"]] for name in (*STAGES, "bound")}
    grouped_bars(axes[0], [row["network"] for row in data["rows"]], series)
    axes[0].set_ylabel("Mcycles")
    legend(axes[0])
    return figure


FIGURE = PaperFigure(
    title="What each stage gains",
    claim="Order by dynamic programming gains 1.17 to 1.42 times, sizes 1.06 to 1.21, reuse on chip 1.07 "
    "to 1.17.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=draw,
    options=OPTIONS,
)
