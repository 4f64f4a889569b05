"""Energy of inference by the approaches."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import (
    INFERRED,
    OTHERS,
    bars,
    changed,
    contest,
    losses,
    mean,
    proven,
    reached,
    shown,
)
from studies.papers.study import Study

SECONDS = {"B": 174.0, "M": 50.0, "R": 1.5}
"""How many times K's seconds the others take."""


def _times(data: Data, way: str) -> float:
    return mean(row[f"{way} [s]"] / max(row["K [s]"], 1e-3) for row in data["rows"])


def measure(study: Study) -> Data:
    """A row per network."""
    rows = contest(study, "energy", others=OTHERS)
    return {"rows": rows, "shown": shown(rows)}


def judge(data: Data) -> Verdict:
    """K 7.7 % above the optimum on average, M 36.1 %, R 59 %."""
    ours, drawn, learned = (mean(losses(data, way)) for way in "KRM")
    compared: list[Compared] = [
        Number("K over the exhaustive optimum, mean [%]", 7.7, ours, "{:.1f}"),
        Number("R over the optimum, mean [%]", 59.0, drawn, "{:.1f}"),
        Number("M over the optimum, mean [%]", 36.1, learned, "{:.1f}"),
        Statement(
            "K is nearest, then M, then R",
            f"{ours:.1f}, {learned:.1f}, {drawn:.1f} %",
            ours < learned < drawn,
        ),
        *(
            Number(f"{way} over K, mean of seconds", printed, _times(data, way), "{:.1f}")
            for way, printed in SECONDS.items()
        ),
    ]
    return Verdict(
        compared,
        differs=f"{changed(data)}  {reached(data)}  Segments are few enough here to price all of them as "
        "quickly as K chooses (table IV).",
        needed="nn-dataflow's loops inside a layer, batch 64 and hours for M would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Energy of inference",
    claim="K is 7.7 % above the exhaustive search on average, M 36.1 % and R 59 %; it is 174, 50 and 1.5 "
    "times as fast as B, M and R.",
    sizes=INFERRED,
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "energy over the optimum", {"K": 7.7, "M": 36.1, "R": 59.0}),
    shown=("shown",),
)
