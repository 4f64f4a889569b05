"""Latency of four ways of orchestration, batch 1, and how long the paper's search and ours take."""

from __future__ import annotations

from math import nan

from studies.papers.atomic.cells import (
    METHODS,
    NETWORKS,
    ONE_SAMPLE,
    OPTIONS,
    contest,
    cycles,
    main_rows,
    places,
    plans,
    proven,
    ratios,
    span,
)
from studies.papers.atomic.fig2 import WAYS, even_cycles
from studies.papers.atomic.pictures import bars
from studies.papers.figure import Compared, Data, PaperFigure, Row, Verdict, between
from studies.papers.study import Study

SEARCH = {"resnet50": 66.5, "resnet152": 102.7, "inception-v3": 406.9, "resnet1001": 1044.6}
"""Seconds of the paper's searches on a Xeon E5-2620 v3 (section V-B)."""


def measure(study: Study) -> Data:
    """Cycles by network and method, and seconds until the best plan."""
    rows = contest(study, 1, cycles, 1e6)
    for row, place in zip(rows, places(study), strict=True):
        row["printed in the paper [s]"] = SEARCH.get(place[0], nan)
        for name in ("printed", "atomic"):
            row[f"{name} [s]"] = plans(study, place, [METHODS[name]], 1)[0].seconds
    return {"rows": rows, "even": [_even(study, *place[:2]) for place in places(study)]}


def _even(study: Study, network: str, dataflow: str) -> Row:
    """Mcycles of evenly cut layers, one after the other, by the way of cutting."""
    cycles_of = {
        way: study.cell("cycles of even cuts", even_cycles, network=network, way=way, dataflow=dataflow) / 1e6
        for way in WAYS
        if not way.startswith("best")
    }
    return {"network": NETWORKS.get(network, network), **cycles_of}


def judge(data: Data) -> Verdict:
    """1.45 to 2.30 times as fast as CNN-P and LS, 1.42 to 3.78 as IL-Pipe."""
    rows = main_rows(data)
    compared: list[Compared] = [
        span("atomic over CNN-P and LS", (1.45, 2.30), ratios(rows, "ls", "atomic")),
        span("atomic over IL-Pipe", (1.42, 3.78), ratios(rows, "il-pipe", "atomic")),
    ]
    own = ratios(rows, "ls", "printed")
    evenly = "; ".join(
        f"{row['network']} {between(cut.values())} times"
        for row, even in zip(rows, data["even"], strict=False)
        for cut in [{way: value / row["atomic"] for way, value in even.items() if way != "network"}]
    )
    return Verdict(
        compared,
        differs="This LS gives every layer the size of atoms that suits it, while the paper's cuts each "
        "layer evenly over all engines, and the text does not say along what.  Cutting evenly alone, even "
        f"without transfers, gives LS from the best to the worst direction {evenly} atomic's cycles: the "
        "direction alone moves the factor across the printed range.  Against the LS here the pipeline as "
        "printed is "
        f"{between(own)} times as fast.",
        needed="Directions of cutting, widths of links and sizes of the baselines' atoms would be needed.",
        best=proven(rows),
    )


FIGURE = PaperFigure(
    title="Latency, batch 1, Mcycles",
    claim="Atomic Dataflow is 1.45 to 2.30 times as fast as CNN-P (the same as LS here), 1.42 to 3.78 "
    "times as IL-Pipe.",
    sizes=ONE_SAMPLE,
    measure=measure,
    judge=judge,
    draw=bars((*METHODS, "bound"), "Mcycles"),
    options=OPTIONS,
    shown=("rows",),
)
