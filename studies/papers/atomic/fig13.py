"""Execution time over the buffer of an engine."""

from __future__ import annotations

import itertools

from studies.papers.atomic.cells import OPTIONS, SCALED
from studies.papers.atomic.fig12 import over_bounds, scaled, without_bounds
from studies.papers.atomic.pictures import curves
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.study import Study

BUFFERS = {f"{size} KiB": f"buffer={size}" for size in (32, 64, 128, 256, 512)}


def measure(study: Study) -> Data:
    """Cycles by network and buffer."""
    rows = scaled(study, BUFFERS)
    return {"rows": rows, "shown": without_bounds(rows)}


def judge(data: Data) -> Verdict:
    """Larger buffers help, and less beyond 128 KB."""
    compared: list[Compared] = []
    explained, legal = [], []
    for row in data["rows"]:
        said = f"{row['network']}: larger buffers help, less beyond 128 KB"
        below, above = row["32 KiB"] / row["128 KiB"], row["128 KiB"] / row["512 KiB"]
        words = f"{below:.2f} times faster from 32 to 128 KiB, {above:.2f} times from there to 512"
        compared.append(Statement(said, words, below > above >= 1))
        least = list(itertools.accumulate((row[name] for name in BUFFERS), min))
        first, last = least[0] / least[2], least[2] / least[-1]
        legal.append(f"{row['network']} {first:.2f} and {last:.2f}")
        explained += [said] * (first > last >= 1)
    return Verdict(
        compared,
        differs="Every plan for a small buffer is legal in a larger one and takes as many cycles there, so "
        "that a slower plan in a larger buffer is the search's doing alone.  With the best plan of this and "
        f"all smaller buffers, the only change, the two factors are {', '.join(legal)}.",
        needed="More seconds of search (`--size full`) would be needed.",
        explained=explained,
        best=over_bounds(data["rows"], list(BUFFERS)),
    )


FIGURE = PaperFigure(
    title="Scaling the buffer of an engine, Mcycles",
    claim="Larger buffers help, less beyond 128 KB; small ones hurt little.",
    sizes=SCALED,
    measure=measure,
    judge=judge,
    draw=curves(list(BUFFERS), "buffer of an engine"),
    options=OPTIONS,
    shown=("shown",),
)
