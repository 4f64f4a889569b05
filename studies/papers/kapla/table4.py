"""Seconds of the approaches for training."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import SIZES, WAYS, known, mean, rows_of
from studies.papers.study import Study, number


def measure(study: Study) -> Data:
    """A row per network."""
    rows: list[Row] = [
        {
            "network": own["network"],
            **{f"{way} [s]": number(own[f"{way} [s]"]) for way in WAYS},
            "S / K": number(own["S / K"]),
        }
        for own in rows_of(study, "table4", "training-seconds")
    ]
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """K is 518 times as fast as B on average."""
    least = min(known([row["K [s]"] for row in data["rows"]]))
    most = max(known([row["K [s]"] for row in data["rows"]]))
    compared: list[Compared] = [
        Number(
            "the exhaustive search over K, mean of seconds",
            518.0,
            mean([row["S / K"] for row in data["rows"]]),
            "{:.1f}",
        ),
        Statement("K takes seconds to minutes", f"{least:.1f} to {most:.1f} s", most < 600),
    ]
    return Verdict(
        compared,
        differs="The space here has no loops inside a layer: segments are few enough to price all of them "
        "as quickly as K "
        "chooses, so that the factor is one of the paper's space, not of the method; the cells of the "
        "printed table are lost.",
        needed="nn-dataflow's exhaustive search inside a layer, hours or days a network, would be needed.",
        best="B is proven in the seconds of the table.",
    )


FIGURE = PaperFigure(
    title="Seconds of the search for training",
    claim="K is 518 times as fast as B and 265 times as M on average.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    shown=("rows",),
)
