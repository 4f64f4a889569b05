"""Maelstrom designs under workloads that they are not optimised for."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from studies.papers.figure import Data, Number, PaperFigure, Row, Verdict
from studies.papers.herald.fig11 import chosen
from studies.papers.herald.spaces import (
    CLASSES,
    FEW,
    QUICK,
    STEPS,
    WORKLOADS,
    best_fda,
    best_of,
    part_of,
    points_of,
    singles_of,
)
from studies.papers.pictures import grouped_bars
from studies.papers.study import Study
from tilewright.hardware.scheduling.herald.classes import TABLE_V
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(study: Study) -> Data:
    """A row per class, workload and machine."""
    rows: list[Row] = []
    for size in chosen(study["class"]):
        designs = {own: best_of(points_of(study, own, size))["parts"] for own in study["workloads"]}
        for workload in study["workloads"]:
            place = {"class": size, "workload": workload}
            for name, cell in singles_of(study, workload, size).items():
                rows.append({**place, "machine": name, "of": "", **cell})
            for own, parts in designs.items():
                cell = part_of(study, workload, size, parts)
                rows.append({**place, "machine": f"HDA for {own}", "of": own, **cell})
    return {"rows": rows, "printed": _printed(study)}


def _printed(study: Study) -> list[Row]:
    """A row per class, workload and design of table V: the workload's own first."""
    rows: list[Row] = []
    for size in chosen(study["class"]):
        designs = {own: TABLE_V.get((size, own.removesuffix("-1"))) for own in study["workloads"]}
        for workload in study["workloads"]:
            for own, design in designs.items():
                if design is not None:
                    parts = [[pes, rate] for rate, pes in zip(*design, strict=True)]
                    cell = part_of(study, workload, size, parts)
                    rows.append({"class": size, "workload": workload, "of": own, **cell})
    return rows


def _moved(rows: list[Row]) -> str:
    """What another workload's design of table V costs, in words; empty without any."""
    home = {(row["class"], row["workload"]): row for row in rows if row["of"] == row["workload"]}
    more = [
        [100 * (row[of] / home[row["class"], row["workload"]][of] - 1) for of in ("cycles", "energy")]
        for row in rows
        if row["of"] != row["workload"]
    ]
    if not more:
        return ""
    latency, energy = (fmean(own) for own in zip(*more, strict=True))
    return (
        "  With table V's designs instead, the only change, another workload's design costs "
        f"{latency:.1f} % of latency and {energy:.1f} % of energy; on edge two of them are the same."
    )


def judge(data: Data) -> Verdict:
    """4.0 % of latency and 0.1 % of energy for another workload's design; gains over RDAs and FDAs."""
    slower, dearer, against_rda, against_fda = [], [], [], []
    places = {(row["class"], row["workload"]) for row in data["rows"]}
    for size, workload in places:
        own = {
            row["machine"]: row for row in data["rows"] if (row["class"], row["workload"]) == (size, workload)
        }
        home, fda = own[f"HDA for {workload}"], best_fda(own)
        for row in own.values():
            if row["of"] and row["of"] != workload:
                slower.append(100 * (row["cycles"] / home["cycles"] - 1))
                dearer.append(100 * (row["energy"] / home["energy"] - 1))
                against_rda.append(
                    [100 * (1 - row[name] / own["RDA"][name]) for name in ("cycles", "energy")]
                )
                against_fda.append([100 * (1 - row[name] / fda[name]) for name in ("cycles", "energy")])
    if not slower:
        return Verdict(needed="At least two workloads are needed.")
    compared = (
        Number("more latency on another workload's design [%]", 4.0, fmean(slower), "{:.1f}"),
        Number("more energy [%]", 0.1, fmean(dearer), "{:.1f}"),
        Number("latency below RDAs [%]", -28.6, fmean(row[0] for row in against_rda), "{:.1f}"),
        Number("energy below RDAs [%]", 19.44, fmean(row[1] for row in against_rda), "{:.1f}"),
        Number("latency below FDAs [%]", 29.99, fmean(row[0] for row in against_fda), "{:.1f}"),
        Number("energy below FDAs [%]", 6.45, fmean(row[1] for row in against_fda), "{:.1f}"),
    )
    gap = max(1 - row["bound"] / row["edp"] for row in data["rows"])
    return Verdict(
        compared,
        differs="The designs compared are the best of these grids, and costs are not MAESTRO's, which the "
        f"latencies of FDAs and RDAs depend on.{_moved(data['printed'])}",
        needed="MAESTRO's costs would be needed.",
        best=f"Herald's schedules are at most {100 * gap:.0f} % above the bounds of their machines.",
    )


def draw(data: Data) -> Figure:
    """Latency above, energy below, averaged over the classes, by workload."""
    workloads = list(dict.fromkeys(row["workload"] for row in data["rows"]))
    machines = list(dict.fromkeys(row["machine"] for row in data["rows"]))
    figure, axes = canvas(1, 5.0, rows=2, sharex=True)
    for axis, name, unit, label in zip(
        axes, ("cycles", "energy"), (1e6, 1e9), ("latency [Mcycles]", "energy [mJ]"), strict=True
    ):
        series = {
            machine: [
                fmean(
                    row[name] / unit
                    for row in data["rows"]
                    if (row["machine"], row["workload"]) == (machine, workload)
                )
                for workload in workloads
            ]
            for machine in machines
        }
        grouped_bars(axis, workloads, series, log=True)
        axis.set_ylabel(label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


FIGURE = PaperFigure(
    title="Designs optimised for another workload",
    claim="Another workload's design costs 4.0 % of latency and 0.1 % of energy on average.",
    sizes={
        "smoke": {
            "class": "edge",
            "workloads": ("mlpx2", "mlpx4"),
            "steps": {"edge": (512, 8)},
            "method": QUICK,
        },
        "short": {"class": "edge", "workloads": WORKLOADS, "steps": STEPS, "method": QUICK, "monoliths": FEW},
        "full": {"class": CLASSES, "workloads": WORKLOADS, "steps": STEPS, "method": "herald"},
    },
    measure=measure,
    judge=judge,
    draw=draw,
    options={"class": CLASSES},
)
