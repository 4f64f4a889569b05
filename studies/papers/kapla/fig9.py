"""Energy of inference by the approaches."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import SIZES, bars, contest, mean, proven
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """A row per network."""
    return contest(study, "figure9", "inference")


def judge(data: Data) -> Verdict:
    """K 7.7 % above B on average, R 59 %."""
    rows = data["rows"]
    ours, drawn = mean([row["K"] for row in rows]), mean([row["R"] for row in rows])
    loose = mean([row["K, loose estimate"] for row in rows])
    compared: list[Compared] = [
        Number("K over B, mean [%]", 7.7, ours, "{:.1f}"),
        Number("R over B, mean [%]", 59.0, drawn, "{:.1f}"),
        Statement("K is nearer to B than R", f"{ours:.1f} % against {drawn:.1f} %", ours < drawn),
    ]
    return Verdict(
        compared,
        differs="K's estimate is closer to the costs here than the paper's; exchanging it alone for the "
        "loose one that the text "
        f"describes takes K's mean loss from {ours:.1f} to {loose:.1f} %.  R draws a tenth of the segments "
        "and prices each "
        "exactly, where the paper's also draws the loops inside a layer.",
        needed="nn-dataflow's space inside a layer would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Energy of inference",
    claim="K is 7.7 % above the exhaustive search on average, M 36.1 % and R 59 %.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "energy over B"),
    shown=("rows",),
)
