"""Energy of training by the approaches."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import (
    OTHERS,
    TRAINED,
    bars,
    changed,
    contest,
    losses,
    mean,
    proven,
    reached,
    shown,
    worst,
)
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """A row per network."""
    rows = contest(study, "energy", ":training", OTHERS)
    return {"rows": rows, "shown": shown(rows)}


def judge(data: Data) -> Verdict:
    """K 2.2 % above the optimum on average, 10 % at most; S matches B; R up to 1.9 times, M 1.5."""
    ours = losses(data, "K")
    better = [row["B"] - row["S"] for row in data["rows"] if row["B"] == row["B"]]
    compared: list[Compared] = [
        Number("K over the exhaustive optimum, mean [%]", 2.2, mean(ours), "{:.1f}"),
        Statement("K is within 10 % in the worst case", f"{worst(data, 'K'):.1f} %", worst(data, "K") <= 10),
        Statement(
            "S is as good as B or slightly better",
            f"{mean(better):.1f} % better",
            min(better, default=0) > -1,
        ),
        Number("R over the optimum, worst", 1.9, 1 + worst(data, "R") / 100, "{:.2f}"),
        Number("M over the optimum, mean [%]", 17.7, mean(losses(data, "M")), "{:.1f}"),
        Number("M over the optimum, worst", 1.5, 1 + worst(data, "M") / 100, "{:.2f}"),
    ]
    return Verdict(
        compared,
        differs=f"{changed(data)}  {reached(data)}",
        needed="nn-dataflow's loops inside a layer, batch 64 and hours for M would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Energy of training",
    claim="K is 2.2 % above the exhaustive search on average, M 17.7 %; R is up to 1.9 times as much.",
    sizes=TRAINED,
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "energy over the optimum", {"K": 2.2, "M": 17.7}),
    shown=("shown",),
)
