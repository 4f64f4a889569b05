"""Execution time over the buffer of an engine."""

from __future__ import annotations

from studies.papers.atomic.cells import OPTIONS, SIZES
from studies.papers.atomic.fig12 import drawn, series_of
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.study import Study
from studies.tiled_figures import BUFFERS

COLUMNS = [f"{size} KiB" for size in BUFFERS]


def measure(study: Study) -> Data:
    """Cycles by network and buffer."""
    return {"rows": series_of(study, "figure13", COLUMNS)}


def judge(data: Data) -> Verdict:
    """Larger buffers help, and less beyond 128 KB."""
    compared: list[Compared] = []
    for row in data["rows"]:
        below, above = row["32 KiB"] / row["128 KiB"], row["128 KiB"] / row["512 KiB"]
        words = f"{below:.2f} times faster from 32 to 128 KiB, {above:.2f} times from there to 512"
        compared.append(
            Statement(f"{row['network']}: larger buffers help, less beyond 128 KB", words, below > above >= 1)
        )
    return Verdict(
        compared,
        differs="Every plan for a small buffer is legal in a larger one, so a slower plan there is the "
        "search's doing, which "
        "offers sizes that take half of a buffer; longer searches (`--size full`) show how much of it is "
        "time.",
        needed="More seconds of search would be needed.",
    )


FIGURE = PaperFigure(
    title="Scaling the buffer of an engine",
    claim="Larger buffers help, less beyond 128 KB; small ones hurt little.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=drawn(COLUMNS, "buffer of an engine"),
    options=OPTIONS,
    shown=("rows",),
)
