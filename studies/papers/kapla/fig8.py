"""Cycles of training by the approaches."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import TRAINED, bars, contest, proven, reached, shown, together, worst
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """A row per network."""
    rows = contest(study, "makespan", ":training")
    return {"rows": rows, "shown": shown(rows)}


def judge(data: Data) -> Verdict:
    """The same trends as energy: S as B, K near the optimum, R and M behind it."""
    (ours, drawn), (same, learned) = together(data, "K", "R"), together(data, "K", "M")
    most = worst(data, "S")
    compared: list[Compared] = [
        Statement("S finds the optimum", f"{most:.1f} % above it at most", most < 1),
        Statement("K is nearer to it than R", f"K {ours:.1f} % above, R {drawn:.1f} %", ours < drawn),
        Statement("K is nearer to it than M", f"K {same:.1f} % above, M {learned:.1f} %", same < learned),
    ]
    return Verdict(
        compared, differs=reached(data), needed="The paper's bars have no printed numbers.", best=proven(data)
    )


FIGURE = PaperFigure(
    title="Cycles of training",
    claim="Performance follows the same trends as energy.",
    sizes={**TRAINED, "short": {**TRAINED["short"], "learning": 5.0}},
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "cycles over the optimum"),
    shown=("shown",),
)
