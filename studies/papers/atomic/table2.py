"""PE utilization without memory delay, overhead of the network and reuse on chip, batch 20."""

from __future__ import annotations

from math import isfinite, nan
from statistics import fmean

from studies.papers.atomic.cells import (
    BATCHES,
    METHODS,
    NETWORKS,
    OPTIONS,
    by_width,
    main_rows,
    places,
    plans,
    setting_of,
    widths,
)
from studies.papers.atomic.fig2 import WAYS, utilizations
from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Verdict
from studies.papers.study import Study

UTILIZATION = {
    "ls": (64.3, 51.1, 60.3, 49.0, 63.7, 69.2, 59.2, 56.4),
    "cnn-p": (74.2, 59.5, 70.3, 57.4, 76.7, 79.8, 72.8, 72.8),
    "il-pipe": (57.1, 47.4, 64.6, 45.7, 58.7, 61.8, 53.7, 67.7),
    "atomic": (86.0, 82.2, 88.9, 78.8, 85.0, 90.2, 95.0, 91.5),
}
"""Percent, by network."""
OVERHEAD = (15.6, 13.2, 15.4, 10.0, 15.9, 17.6, 9.4, 10.5)
REUSE = (60.2, 82.0, 85.7, 90.8, 54.1, 61.2, 87.3, 79.6)
PRINTED = {
    **{f"{name} [%]": values for name, values in UTILIZATION.items()},
    "NoC overhead [%]": OVERHEAD,
    "reuse [%]": REUSE,
}


def measure(study: Study) -> Data:
    """A row per network and setting; NoC overhead and reuse are those of atomic."""
    rows: list[Row] = []
    for place in places(study):
        runs = dict(zip(METHODS, plans(study, place, list(METHODS.values()), 20), strict=True))
        row = setting_of(*place)
        row |= {f"{name} [%]": 100 * runs[name].compute_utilization for name in UTILIZATION}
        atomic = runs["atomic"]
        row |= {"NoC overhead [%]": 100 * atomic.network_overhead, "reuse [%]": 100 * atomic.reuse}
        rows.append(row)
    names = list(NETWORKS.values())
    nearest: list[Row] = []
    for network in dict.fromkeys(row["network"] for row in rows):
        if network in names:
            at, own = names.index(network), [row for row in rows if row["network"] == network]
            table = {
                f"{network}: {column}": (
                    (values[at], values[at]),
                    lambda row, column=column: float(row[column]),
                )
                for column, values in PRINTED.items()
            }
            nearest += widths(own, table, "{:.1f}")
    return {"rows": rows, "widths": nearest, "even": [_even(study, network) for network in study["networks"]]}


def _even(study: Study, network: str) -> Row:
    """Mean utilization over layers that are cut evenly, one sample, from the worst direction to the best."""
    ways = [way for way in WAYS if not way.startswith("best")]
    means = [
        100 * fmean(study.cell("even cuts", utilizations, network=network, way=way, dataflow="kc"))
        for way in ways
    ]
    return {"network": NETWORKS.get(network, network), "least": min(means), "most": max(means)}


def judge(data: Data) -> Verdict:
    """Every printed number."""
    names = list(NETWORKS.values())
    compared: list[Compared] = []
    for row in main_rows(data):
        for column, values in PRINTED.items():
            printed = values[names.index(row["network"])] if row["network"] in names else nan
            if isfinite(printed):
                compared.append(Number(f"{row['network']}: {column}", printed, row[column], "{:.1f}"))
    cuts = ", ".join(f"{row['network']} {row['least']:.1f} to {row['most']:.1f} %" for row in data["even"])
    return Verdict(
        compared,
        differs="Utilization is over all multiply-accumulates here and over layers in the paper.  Cutting "
        "layers evenly over all engines, one sample and one direction for all, which changes LS alone, gives "
        f"on average over layers {cuts}." + by_width(data["widths"]),
        needed="The width of links and the paper's LS would be needed.",
    )


FIGURE = PaperFigure(
    title="PE utilization, overhead of the network, reuse on chip",
    claim="Atomic Dataflow has 78.8 to 95.0 % utilization, 9.4 to 17.6 % overhead, 54.1 to 90.8 % reuse.",
    sizes=BATCHES,
    measure=measure,
    judge=judge,
    options=OPTIONS,
    shown=("rows", "widths"),
)
