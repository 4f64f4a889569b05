"""Seconds of the approaches for training."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import TRAINED, WAYS, contest, mean, proven
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """A row per network, of the cells of figure 7."""
    rows = contest(study, "energy", ":training")
    shown: list[Row] = []
    for own in rows:
        row: Row = {"network": own["network"], "proven [s]": own["proven [s]"]}
        row |= {f"{way} [s]": own[f"{way} [s]"] for way in WAYS}
        row |= {f"{way} / K": own[f"{way} [s]"] / max(own["K [s]"], 1e-3) for way in ("B", "S", "M")}
        shown.append({**row, "segments that M priced": own["segments that M priced"]})
    return {"rows": rows, "shown": shown}


def judge(data: Data) -> Verdict:
    """K is 518 times as fast as B and 265 times as M on average; seconds to minutes."""
    rows = data["shown"]
    seconds = [row["K [s]"] for row in rows]
    late = sum(row["time was up"] for row in data["rows"])
    compared: list[Compared] = [
        Number("B over K, mean of seconds", 518.0, mean(row["B / K"] for row in rows), "{:.1f}"),
        Number("M over K, mean of seconds", 265.0, mean(row["M / K"] for row in rows), "{:.1f}"),
        Statement(
            "K takes seconds to minutes", f"{min(seconds):.1f} to {max(seconds):.1f} s", max(seconds) < 600
        ),
    ]
    return Verdict(
        compared,
        differs="The space here has no loops inside a layer: segments are few enough to price all of them "
        "as quickly as K chooses, so that B's factor is one of the paper's space, not of the method.  M's is "
        f"a lower bound on {late} of {len(rows)} networks, where its limit struck.  The cells of the printed "
        "table are lost.",
        needed="nn-dataflow's exhaustive search inside a layer, hours or days a network, would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Seconds of the search for training",
    claim="K is 518 times as fast as B and 265 times as M on average.",
    sizes=TRAINED,
    measure=measure,
    judge=judge,
    shown=("shown",),
)
