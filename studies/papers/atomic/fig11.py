"""Energy of four ways of orchestration, batch 20."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.atomic.cells import OPTIONS, SIZES
from studies.papers.atomic.fig8 import METHODS, contest, proven
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEARER = ("VGG-19", "ResNet-50", "ResNet-152")
"""The first three networks, on which the paper's atomic takes slightly more than IL-Pipe."""


def measure(study: Study) -> Data:
    """pJ by network and method."""
    return {"rows": contest(study, "figure11", 20, 1e9, "energy")}


def judge(data: Data) -> Verdict:
    """IL-Pipe and atomic take least; which of the two, by network."""
    compared: list[Compared] = []
    for row in data["rows"]:
        ranked = sorted(("ls", "cnn-p", "il-pipe", "atomic"), key=lambda name: row[name])
        compared.append(
            Statement(
                f"{row['network']}: IL-Pipe and atomic take least",
                " < ".join(ranked),
                set(ranked[:2]) == {"il-pipe", "atomic"},
            )
        )
        ratio, dearer = row["atomic"] / row["il-pipe"], row["network"] in DEARER
        said = "slightly more" if dearer else "less"
        compared.append(
            Statement(
                f"{row['network']}: atomic takes {said} than IL-Pipe",
                f"{ratio:.2f} times",
                (ratio > 1) == dearer,
            )
        )
    return Verdict(
        compared,
        differs="LS reads what it needs from DRAM in the paper; here its results stay on chip where "
        "buffers allow it.  No "
        "measurement with the paper's LS is at hand.",
        needed="The baselines' buffering would be needed.",
        best=proven(data),
    )


def draw(data: Data) -> Figure:
    """Bars by network, and the bound."""
    figure, axes = canvas(1, 3.0)
    names = (*METHODS, "bound")
    series = {name: [row[name] / 1e9 for row in data["rows"]] for name in names}
    grouped_bars(axes[0], [row["network"] for row in data["rows"]], series)
    axes[0].set_ylabel("mJ")
    legend(axes[0], len(names))
    return figure


FIGURE = PaperFigure(
    title="Energy, batch 20",
    claim="IL-Pipe and Atomic Dataflow take least, the latter slightly more on three networks and less on "
    "four.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=draw,
    options=OPTIONS,
)
