"""Overhead of energy and seconds of the search over the number of chains kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import INFERRED, PROVEN, SPACE, above, cell, mean
from studies.papers.pictures import lines
from studies.papers.study import Study
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = (1, 2, 4, 8, 16)


def measure(study: Study) -> Data:
    """A row per network."""
    rows: list[Row] = []
    for network in study["networks"]:
        least = cell(study, network, "energy", PROVEN)["value"]
        own = {kept: cell(study, network, "energy", f"kapla[{SPACE},k={kept}]") for kept in KEPT}
        row: Row = {"network": network}
        row |= {f"k={kept} [%]": above(answer["value"], least) for kept, answer in own.items()}
        rows.append(row | {f"k={kept} [s]": answer["seconds"] for kept, answer in own.items()})
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Fewer chains kept cost little energy, and much less time."""
    lost = {kept: mean([row[f"k={kept} [%]"] for row in data["rows"]]) for kept in KEPT}
    spent = {kept: sum(row[f"k={kept} [s]"] for row in data["rows"]) for kept in KEPT}
    fewest, most = KEPT[0], KEPT[-1]
    compared: list[Compared] = [
        Statement(
            "the overhead hardly grows with fewer kept",
            f"{lost[most]:.2f} % with {most}, {lost[fewest]:.2f} % with {fewest}",
            lost[fewest] - lost[most] < 2,
        ),
        Statement(
            "the search is substantially faster with fewer kept",
            f"{spent[most]:.1f} s with {most}, {spent[fewest]:.1f} s with {fewest}",
            spent[fewest] < 0.75 * spent[most],
        ),
    ]
    return Verdict(
        compared,
        differs="Only the chains kept are priced here, and layers of one shape share what is known of "
        "them; the paper solves the loops of every layer of every chain kept.",
        needed="Intra-layer solving for every chain would be needed.",
        best="The overhead is against the proven best chain.",
    )


def draw(data: Data) -> Figure:
    """Overhead on the left, seconds on the right."""
    figure, axes = canvas(2, 2.6)
    for axis, unit in zip(axes, ("%", "s"), strict=True):
        lines(
            axis,
            list(KEPT),
            {row["network"]: [row[f"k={kept} [{unit}]"] for kept in KEPT] for row in data["rows"]},
        )
        axis.set_xscale("log", base=2)
        axis.set_xticks(KEPT, [str(kept) for kept in KEPT])
        axis.set_xlabel("chains kept")
    axes[0].set_ylabel("energy over the optimum [%]")
    axes[1].set_ylabel("CPU seconds")
    axes[0].legend()
    return figure


FIGURE = PaperFigure(
    title="Chains kept: energy and seconds",
    claim="With fewer segments kept the overhead does not increase much, and the search is substantially "
    "faster.",
    sizes=INFERRED,
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("rows",),
)
