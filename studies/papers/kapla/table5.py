"""Overhead of K on machines of other sizes."""

from __future__ import annotations

from typing import Any

from studies.papers.figure import Compared, Data, PaperFigure, Row, Span, Statement, Verdict, between
from studies.papers.kapla.chains import INFERRED, KAPLA, OTHERS, PROVEN, above, cell, mean
from studies.papers.study import Study

PRINTED = (4.4, 2.7, 1.5, 8.3, 6.7)
"""Overheads in percent, batches 64, 64, 64, 8 and 1; nodes, PEs and buffers are lost in the text."""
MACHINES = {
    "8x8 nodes, 16x16 PEs, 512 kB": ("engines=8x8,array=16x16,buffer=512", 4),
    "4x4 nodes, 32x32 PEs, 1 MB": ("engines=4x4,array=32x32,buffer=1024", 4),
    "4x4 nodes, 16x16 PEs, 512 kB": ("engines=4x4,array=16x16,buffer=512", 4),
    "8x8 nodes, batch 2": ("engines=8x8,array=16x16,buffer=512", 2),
    "8x8 nodes, batch 1": ("engines=8x8,array=16x16,buffer=512", 1),
}
"""Machines of ours, and batches, five of them as in the table."""


def measure(study: Study) -> Data:
    """A row per machine: the mean overhead over the networks."""
    rows: list[Row] = []
    for name in study["machines"]:
        brackets, batch = MACHINES[name]
        place: dict[str, Any] = {"system": f"kapla-16x16[{brackets}]", "batch": batch}
        lost, loose, proven = [], [], 0
        for network in study["networks"]:
            best = cell(study, network, "energy", PROVEN, **place)
            kapla = cell(study, network, "energy", KAPLA, **place)
            lost.append(above(kapla["value"], best["value"]))
            other = cell(study, network, "energy", OTHERS["K, loose estimate"], **place)
            loose.append(above(other["value"], best["value"]))
            proven += best["proven"]
        own: Row = {"machine": name, "batch": batch, "overhead [%]": mean(lost)}
        rows.append({**own, "loose estimate [%]": mean(loose), "proven": proven, "networks": len(lost)})
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Overheads are small: 1.5 to 8.3 %."""
    ours, loose = ([row[name] for row in data["rows"]] for name in ("overhead [%]", "loose estimate [%]"))
    compared: list[Compared] = [
        Statement(
            "overheads are small, 8.3 % at most", f"{max(ours):.2f} % at most", max(ours) <= max(PRINTED)
        ),
        Span("overheads [%]", min(PRINTED), min(ours), "{:.2f}", max(PRINTED), max(ours)),
    ]
    proven, every = (sum(row[name] for row in data["rows"]) for name in ("proven", "networks"))
    return Verdict(
        compared,
        differs="The loose estimate that the text describes, the only change, takes the overheads from "
        f"{between(ours)} % to {between(loose)} %.",
        needed="Nodes, PEs and buffers of the printed rows, which are lost in the text, would be needed to "
        "compare row by row.",
        best=f"The overhead is against the proven best chain on {proven} of {every} networks and machines.",
    )


FIGURE = PaperFigure(
    title="Other hardware configurations",
    claim="Overheads are 4.4, 2.7, 1.5, 8.3 and 6.7 % on five configurations.",
    sizes={
        size: {**values, "machines": tuple(MACHINES)[: 1 if size == "smoke" else None]}
        for size, values in INFERRED.items()
    },
    measure=measure,
    judge=judge,
    shown=("rows",),
)
