"""Energy of training by the approaches."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import SIZES, bars, contest, known, mean, proven
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """A row per network."""
    return contest(study, "figure7", "training")


def judge(data: Data) -> Verdict:
    """K 2.2 % above B on average, 10 % at most; S matches B; R up to 1.9 times."""
    rows = data["rows"]
    worst = max(row["K"] for row in rows)
    most = max(known([row["R"] for row in rows]), default=float("nan"))
    compared: list[Compared] = [
        Number("K over B, mean [%]", 2.2, mean([row["K"] for row in rows]), "{:.1f}"),
        Statement("K is within 10 % in the worst case", f"{worst:.1f} %", worst <= 10),
        Statement(
            "S matches B",
            f"{max(abs(row['S']) for row in rows):.1f} % at most",
            max(abs(row["S"]) for row in rows) < 1,
        ),
        Number("R over B, worst", 1.9, 1 + most / 100, "{:.2f}"),
    ]
    loose = mean([row["K, loose estimate"] for row in rows])
    missing = sum(row["R"] != row["R"] for row in rows)
    return Verdict(
        compared,
        differs="K's estimate is closer to the costs here than the paper's; exchanging it alone for the "
        "loose one that the text "
        f"describes takes K's mean loss from {mean([row['K'] for row in rows]):.1f} to {loose:.1f} %.  R "
        "finds no chain on "
        f"{missing} of {len(rows)} networks with the paper's probability of 0.1.",
        needed="nn-dataflow's space inside a layer, and batch 64 on the paper's nodes, would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Energy of training",
    claim="K is 2.2 % above the exhaustive search on average, M 17.7 %; R is up to 1.9 times as much.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "energy over B"),
    shown=("rows",),
)
