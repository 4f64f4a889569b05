"""Energy of four ways of orchestration, batch 20."""

from __future__ import annotations

from studies.papers.atomic.cells import (
    BATCHES,
    LAYER_BY_LAYER,
    MAIN,
    METHODS,
    OPTIONS,
    THROUGH_DRAM,
    contest,
    energy,
    main_rows,
    places,
    plans,
    proven,
    ratios,
)
from studies.papers.atomic.pictures import bars
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict, between
from studies.papers.study import Study

DEARER = ("VGG-19", "ResNet-50", "ResNet-152")
"""The first three networks, on which the paper's atomic takes slightly more than IL-Pipe."""


def measure(study: Study) -> Data:
    """pJ by network, setting and method."""
    through = []
    for place in places(study):
        if place[1:] == MAIN:
            runs = plans(study, place, (*LAYER_BY_LAYER, THROUGH_DRAM), 20)
            kept, sent, cnn_p = (energy(run) / 1e9 for run in runs)
            through.append({"ls, kept": kept, "ls, sent": sent, "cnn-p, sent": cnn_p})
    return {"rows": contest(study, 20, energy, 1e9), "through": through}


def _order(row: Row) -> list[str]:
    """The four methods, that of least energy first."""
    return sorted(("ls", "cnn-p", "il-pipe", "atomic"), key=lambda name: float(row[name]))


def judge(data: Data) -> Verdict:
    """IL-Pipe and atomic take least; which of the two, by network."""
    rows = main_rows(data)
    compared: list[Compared] = []
    explained = []
    for row, sent in zip(rows, data["through"], strict=False):
        if max(row["il-pipe"], row["atomic"]) < min(sent["ls, sent"], sent["cnn-p, sent"]):
            explained.append(f"{row['network']}: IL-Pipe and atomic take least")
    for row in rows:
        ranked = _order(row)
        least = set(ranked[:2]) == {"il-pipe", "atomic"}
        compared.append(
            Statement(f"{row['network']}: IL-Pipe and atomic take least", " < ".join(ranked), least)
        )
        ratio, dearer = row["atomic"] / row["il-pipe"], row["network"] in DEARER
        said = "slightly more" if dearer else "less"
        words = f"{ratio:.2f} times"
        compared.append(
            Statement(f"{row['network']}: atomic takes {said} than IL-Pipe", words, (ratio > 1) == dearer)
        )
    words = "; ".join(
        f"on {row['network']} LS (sample by sample) from {sent['ls, kept']:.0f} to {sent['ls, sent']:.0f} mJ "
        f"and CNN-P from {row['cnn-p']:.0f} to {sent['cnn-p, sent']:.0f} mJ"
        for row, sent in zip(rows, data["through"], strict=False)
    )
    differs = (
        "LS and CNN-P keep results on chip here where they fit.  Sending them through DRAM as in the paper, "
        f"the only change, takes {words}{', above IL-Pipe and atomic' if explained else ''}."
    )
    if len(data["rows"]) > len(rows):
        every = ratios(data["rows"], "atomic", "il-pipe")
        differs += (
            "  The width of links and the dataflow are not the cause: in all settings atomic takes "
            f"{between(every)} times IL-Pipe's energy."
        )
    return Verdict(
        compared,
        differs=differs,
        needed="The baselines' buffering would be needed.",
        explained=explained,
        best=proven(rows),
    )


FIGURE = PaperFigure(
    title="Energy, batch 20, mJ",
    claim="IL-Pipe and Atomic Dataflow take least, the latter slightly more on three networks and less on "
    "four.",
    sizes=BATCHES,
    measure=measure,
    judge=judge,
    draw=bars((*METHODS, "bound"), "mJ"),
    options=OPTIONS,
    shown=("rows",),
)
