"""Schemes between layers before and after pruning."""

from __future__ import annotations

from studies.kapla_tables import PRUNED
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import SIZES, mean, rows_of
from studies.papers.study import Study, number


def measure(study: Study) -> Data:
    """A row per network."""
    rows: list[Row] = []
    for own in rows_of(study, "table6", "pruning"):
        total, left = PRUNED[own["network"]]
        rows.append(
            {
                "network": own["network"],
                "schemes, all segments": number(own["schemes"]),
                "left": number(own["beaten by none"]),
                "pruned [%]": number(own["pruned [%]"]),
                "printed schemes, one segment": total,
                "printed left": left,
                "printed pruned [%]": 100 * (1 - left / total),
            }
        )
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Pruning takes away most of the schemes."""
    ours, printed = (
        mean([row[name] for row in data["rows"]]) for name in ("pruned [%]", "printed pruned [%]")
    )
    least = min(row["pruned [%]"] for row in data["rows"])
    compared: list[Compared] = [
        Statement(
            f"pruning takes away most schemes ({printed:.1f} % on average)",
            f"{ours:.1f} %, at least {least:.1f}",
            least > 50,
        )
    ]
    return Verdict(
        compared,
        differs="The paper counts one segment of each network, which one is not said; here all segments of "
        "a network are counted.",
        needed="The paper's segments would be needed.",
        best="No scheme that fits is pruned: bounds only, tested on over 20,000 segments.",
    )


FIGURE = PaperFigure(
    title="Schemes between layers before and after pruning",
    claim="85.7 to 99.8 % of the schemes of a segment are pruned.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    shown=("rows",),
)
