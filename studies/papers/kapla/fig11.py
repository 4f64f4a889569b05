"""Overhead of energy and seconds of the search over the number of chains kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.figures import printed_tables
from studies.kapla_tables import KEPT
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import SIZES, asked, mean, printed
from studies.papers.pictures import lines
from studies.papers.study import Study, number, read_table
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(study: Study) -> Data:
    """A row per network; the manual does not have this table."""
    text = printed(study, "figure11", asked(study, "inference"))
    rows: list[Row] = [
        {
            "network": own["network"],
            **{f"k={kept} [%]": number(own[f"k={kept} [%]"]) for kept in KEPT},
            **{f"k={kept} [s]": number(own[f"k={kept} [s]"]) for kept in KEPT},
        }
        for table in printed_tables(text)
        for own in read_table(table)
    ]
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Fewer rows kept cost little energy, and much less time."""
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
        "them; the paper solves the "
        "loops of every layer of every chain kept.",
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
    axes[0].set_ylabel("energy over B [%]")
    axes[1].set_ylabel("CPU seconds")
    axes[0].legend()
    return figure


FIGURE = PaperFigure(
    title="Chains kept: energy and seconds",
    claim="With fewer segments kept the overhead does not increase much, and the search is substantially "
    "faster.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("rows",),
)
