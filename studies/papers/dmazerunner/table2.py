"""Orderings of unique reuse of a convolution's seven loops: 15 of 5,040."""

from __future__ import annotations

from studies.papers.dmazerunner.fig6 import reuse_map, tables
from studies.papers.figure import Data, Number, PaperFigure, Verdict, every_size


def judge(data: Data) -> Verdict:
    """15 of 5,040."""
    total = sum(row["orderings alike"] for row in data["rows"])
    return Verdict(
        compared=(
            Number("orderings of seven loops", 5040, total, "{:,.0f}"),
            Number("of unique reuse", 15, len(data["rows"]), "{:.0f}"),
            Number("listed by algorithm 2", 15, data["listed"][0]["count"], "{:.0f}"),
        ),
        differs="Nothing differs; the rows are the paper's, with our names N K C P Q R S for n m c oy ox "
        "fy fx.",
        needed="Nothing.",
        best="The count is complete: all 5,040 orderings are enumerated without the rule that prunes them "
        "([proofs](proofs.md) shows why three of the 15 suffice for the optimum without sliding windows).",
    )


FIGURE = PaperFigure(
    title="Reuse factors of a convolution's orderings",
    claim="Of 7! = 5,040 orderings 15 have unique reuse factors.",
    sizes=every_size(layer="conv:N=4,K=8,C=6,P=5,Q=5,R=3,S=3"),
    measure=tables,
    judge=judge,
    draw=reuse_map,
)
