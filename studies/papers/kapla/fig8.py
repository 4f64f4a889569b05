"""Cycles of training by the approaches."""

from __future__ import annotations

from studies.figures import printed_tables
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.kapla.chains import SIZES, SMOKE, WAYS, asked, bars, known, mean, printed, proven
from studies.papers.study import Study, number, read_table


def measure(study: Study) -> Data:
    """A row per network; the manual does not have this table."""
    text = printed(study, "figure8", asked(study, "training"))
    rows = [
        {
            "network": own["network"],
            "least": number(own["least"]),
            "state": own.get("column 2", ""),
            **{way: number(own[way]) for way in WAYS[:-1]},
            "K": number(own["K [% above the least]"]),
        }
        for table in printed_tables(text)
        for own in read_table(table)
    ]
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """The same trends as energy: S as B, K near it, R behind."""
    rows = data["rows"]
    drawn = mean([row["R"] for row in rows])
    ours = mean([row["K"] for row in rows])
    same = max(known([abs(row["S"]) for row in rows]), default=float("nan"))
    compared: list[Compared] = [
        Statement("S matches B", f"{same:.1f} % at most", same < 1),
        Statement("K is near B and R behind it", f"K {ours:.1f} % above, R {drawn:.1f} %", ours < drawn),
    ]
    return Verdict(compared, needed="The paper's bars have no printed numbers.", best=proven(data))


FIGURE = PaperFigure(
    title="Cycles of training",
    claim="Performance follows the same trends as energy.",
    sizes={**SIZES, "smoke": SMOKE},
    measure=measure,
    judge=judge,
    draw=lambda data: bars(data, "cycles over B"),
    shown=("rows",),
)
