"""Throughput of four ways of orchestration, batch 20."""

from __future__ import annotations

from studies.papers.atomic.cells import (
    BATCHES,
    METHODS,
    OPTIONS,
    THROUGH_DRAM,
    by_width,
    contest,
    cycles,
    in_setting,
    main_rows,
    places,
    plans,
    proven,
    ratios,
    span,
    widths,
)
from studies.papers.atomic.pictures import bars
from studies.papers.figure import Compared, Data, PaperFigure, Statement, Verdict, between
from studies.papers.study import Study

KC, YX = (1.12, 1.38), (1.08, 1.42)
"""Atomic's throughput over CNN-P's by dataflow."""

SLOW_PIPELINES = ("NasNet", "PNasNet")


def measure(study: Study) -> Data:
    """Cycles by network, setting and method."""
    rows = contest(study, 20, cycles, 1e6)
    through = [plans(study, place, [THROUGH_DRAM], 20)[0].cycles for place in places(study)]
    for row, own in zip(rows, through, strict=True):
        row["cnn-p through DRAM"] = own / 1e6
    table = widths(rows, {"atomic over CNN-P": (KC, lambda row: float(row["cnn-p"] / row["atomic"]))})
    return {"rows": rows, "widths": table}


def judge(data: Data) -> Verdict:
    """1.12 to 1.38 times CNN-P's throughput; CNN-P exceeds LS."""
    rows, across = main_rows(data), in_setting(data["rows"], "yx", 16)
    own = ratios(rows, "ls", "cnn-p")
    compared: list[Compared] = [
        span("atomic over CNN-P", KC, ratios(rows, "cnn-p", "atomic")),
        Statement("CNN-P exceeds LS in all cases", f"{between(own)} times LS", min(own) > 1),
    ]
    compared += [
        Statement(
            f"{row['network']}: IL-Pipe is even slower than LS",
            f"{row['il-pipe'] / row['ls']:.2f} times as many cycles",
            row["il-pipe"] > row["ls"],
        )
        for row in rows
        if row["network"] in SLOW_PIPELINES
    ]
    if across:
        compared.append(span("YX: atomic over CNN-P", YX, ratios(across, "cnn-p", "atomic")))
    through = ratios(rows, "cnn-p through DRAM", "cnn-p")
    return Verdict(
        compared,
        differs="LS and atomic take all samples of a layer through sizes of their own, and pipelines wait "
        "for their longest region.  The paper's CNN-P writes all results to DRAM: that alone makes it "
        f"{between(through)} times as slow, so that it is not the cause."
        f"{by_width(data['widths'])}",
        needed="The paper's sizes of atoms and regions would be needed.",
        best=proven(rows),
    )


FIGURE = PaperFigure(
    title="Throughput, batch 20: Mcycles",
    claim="Atomic Dataflow has 1.12 to 1.38 times CNN-P's throughput (KC), 1.08 to 1.42 (YX); CNN-P "
    "exceeds LS.",
    sizes=BATCHES,
    measure=measure,
    judge=judge,
    draw=bars((*METHODS, "bound"), "Mcycles"),
    options=OPTIONS,
    shown=("rows", "widths"),
)
