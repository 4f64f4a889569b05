"""Energy of four ways of orchestration, batch 20."""

from __future__ import annotations

from studies.papers.atomic.cells import BATCHES, METHODS, OPTIONS, contest, energy, main_rows, proven, ratios
from studies.papers.atomic.pictures import bars
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.study import Study

DEARER = ("VGG-19", "ResNet-50", "ResNet-152")
"""The first three networks, on which the paper's atomic takes slightly more than IL-Pipe."""


def measure(study: Study) -> Data:
    """pJ by network, setting and method."""
    return {"rows": contest(study, 20, energy, 1e9)}


def _order(row: Row) -> list[str]:
    """The four methods, that of least energy first."""
    return sorted(("ls", "cnn-p", "il-pipe", "atomic"), key=lambda name: float(row[name]))


def judge(data: Data) -> Verdict:
    """IL-Pipe and atomic take least; which of the two, by network."""
    rows = main_rows(data)
    compared: list[Compared] = []
    for row in rows:
        ranked = _order(row)
        least = set(ranked[:2]) == {"il-pipe", "atomic"}
        compared.append(
            Statement(f"{row['network']}: IL-Pipe and atomic take least", " < ".join(ranked), least)
        )
        ratio, dearer = row["atomic"] / row["il-pipe"], row["network"] in DEARER
        said = "slightly more" if dearer else "less"
        words = f"{ratio:.2f} times"
        compared.append(
            Statement(f"{row['network']}: atomic takes {said} than IL-Pipe", words, (ratio > 1) == dearer)
        )
    differs = (
        "LS reads what it needs from DRAM in the paper; here its results stay on chip where they fit.  "
        "No measurement with the paper's LS is at hand."
    )
    if len(data["rows"]) > len(rows):
        every = ratios(data["rows"], "atomic", "il-pipe")
        differs += (
            "  The width of links and the dataflow are not the cause: in all settings atomic takes "
            f"{min(every):.2f} to {max(every):.2f} times IL-Pipe's energy."
        )
    return Verdict(
        compared, differs=differs, needed="The baselines' buffering would be needed.", best=proven(rows)
    )


FIGURE = PaperFigure(
    title="Energy, batch 20, mJ",
    claim="IL-Pipe and Atomic Dataflow take least, the latter slightly more on three networks and less on "
    "four.",
    sizes=BATCHES,
    measure=measure,
    judge=judge,
    draw=bars((*METHODS, "bound"), "mJ"),
    options=OPTIONS,
    shown=("rows",),
)
