"""Schemes between layers before and after pruning."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.kapla.chains import INFERRED, KAPLA, cell, mean
from studies.papers.study import Study

PRINTED = {
    "alexnet": (700, 2),
    "mobilenet-v1": (331, 42),
    "vgg16": (7, 1),
    "googlenet": (560, 1),
    "resnet50": (63, 4),
    "mlp": (784, 18),
    "lstm": (70, 3),
}
"""Schemes of one segment, and those after both prunings."""


def measure(study: Study) -> Data:
    """A row per network."""
    rows: list[Row] = []
    for network in study["networks"]:
        own = cell(study, network, "energy", KAPLA)
        total, left = PRINTED[network]
        rows.append(
            {
                "network": network,
                "schemes, all segments": own["schemes"],
                "may fit": own["valid"],
                "beaten by none": own["kept"],
                "pruned [%]": 100 * (1 - own["kept"] / own["schemes"]),
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
    sizes=INFERRED,
    measure=measure,
    judge=judge,
    shown=("rows",),
)
