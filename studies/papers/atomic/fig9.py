"""Throughput of four ways of orchestration, batch 20."""

from __future__ import annotations

from studies.papers.atomic.cells import OPTIONS, SIZES
from studies.papers.atomic.fig8 import contest, draw, proven, ratios, span
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict
from studies.papers.study import Study


def measure(study: Study) -> Data:
    """Cycles by network and method."""
    return {"rows": contest(study, "figure9", 20, 1.0, "cycles")}


def judge(data: Data) -> Verdict:
    """1.12 to 1.38 times CNN-P's throughput; CNN-P exceeds LS."""
    own = ratios(data, "ls", "cnn-p")
    compared: list[Compared] = [
        span("atomic over CNN-P", (1.12, 1.38), ratios(data, "cnn-p", "atomic")),
        Statement(
            "CNN-P exceeds LS in all cases", f"{min(own):.2f} to {max(own):.2f} times LS", min(own) > 1
        ),
    ]
    return Verdict(
        compared,
        differs="LS and atomic take all samples of a layer through sizes of their own, and pipelines wait "
        "for their longest "
        "region; no measurement here separates that from the width of links.",
        needed="The paper's sizes of atoms and regions would be needed.",
        best=proven(data),
    )


FIGURE = PaperFigure(
    title="Throughput, batch 20",
    claim="Atomic Dataflow has 1.12 to 1.38 times CNN-P's throughput (KC), 1.08 to 1.42 (YX); CNN-P "
    "exceeds LS.",
    sizes=SIZES,
    measure=measure,
    judge=judge,
    draw=draw,
    options=OPTIONS,
)
