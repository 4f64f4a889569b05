"""Gains of Maelstrom over the best FDA and the RDA with one and eight batches of MLPerf."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.fig11 import chosen
from studies.papers.herald.spaces import (
    CLASSES,
    FEW,
    QUICK,
    STEPS,
    best_fda,
    best_of,
    most_gained,
    points_of,
    singles_of,
)
from studies.papers.study import Study

PRINTED = {
    ("edge", "mlperf-1"): (12.4, -8.2, 0.2, 20.4),
    ("edge", "mlperf-8"): (21.28, 26.7, 10.8, 22.9),
    ("mobile", "mlperf-1"): (12.4, -8.2, 0.2, 17.1),
    ("mobile", "mlperf-8"): (56.0, 76.1, 1.3, 43.5),
    ("cloud", "mlperf-1"): (20.2, 25.7, 10.8, 26.8),
    ("cloud", "mlperf-8"): (63.9, 80.4, 1.34, 41.3),
}
"""Percent of latency gained over the FDA and the RDA, and of energy."""
GAINS = ("latency, FDA", "latency, RDA", "energy, FDA", "energy, RDA")


def measure(study: Study) -> Data:
    """A row per class and number of batches."""
    rows: list[Row] = []
    for size in chosen(study["class"]):
        for workload in study["workloads"]:
            single, points = singles_of(study, workload, size, FEW), points_of(study, workload, size)
            best, fda, rda = best_of(points), best_fda(single), single["RDA"]
            row: Row = {"class": size, "workload": workload}
            for name, other, figure in zip(
                GAINS, (fda, rda) * 2, ("cycles",) * 2 + ("energy",) * 2, strict=True
            ):
                row[f"{name} [%]"] = 100 * (1 - best[figure] / other[figure])
            row["most EDP that any schedule gains over the FDA [%]"] = 100 * (
                1 - min(point["bound"] for point in points) / fda["edp"]
            )
            rows.append(row)
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """The printed gains, scenario by scenario."""
    compared: list[Compared] = []
    for row in data["rows"]:
        for name, printed in zip(GAINS, PRINTED.get((row["class"], row["workload"]), ()), strict=False):
            compared.append(
                Number(
                    f"{row['class']}, {row['workload']}: {name} [%]", printed, row[f"{name} [%]"], "{:.1f}"
                )
            )
    for size in dict.fromkeys(row["class"] for row in data["rows"]):
        gained = [row[f"{GAINS[0]} [%]"] for row in data["rows"] if row["class"] == size]
        if len(gained) == 2:
            words = f"{gained[0]:.1f} and {gained[1]:.1f} % of latency"
            said = f"{size}: gains over the FDA are larger with eight batches"
            compared.append(Statement(said, words, gained[1] > gained[0]))
    certain = max(row["most EDP that any schedule gains over the FDA [%]"] for row in data["rows"])
    return Verdict(
        compared,
        differs=f"Bounds prove that {most_gained(certain)}, so that the scheduler is not the cause.",
        needed="The paper's latencies of the FDA and the RDA would be needed.",
        best="The last column is proven.",
    )


FIGURE = PaperFigure(
    title="Gains with one and eight batches of MLPerf",
    claim="With eight batches gains are larger: up to 63.9 % of latency over the FDA and 80.4 % over the "
    "RDA.",
    sizes={
        "smoke": {
            "class": "edge",
            "workloads": ("handposex2",),
            "steps": {"edge": (512, 8)},
            "method": QUICK,
        },
        "short": {
            "class": "edge",
            "workloads": ("mlperf-1", "mlperf-8"),
            "steps": {"edge": (256, 4)},
            "method": QUICK,
        },
        "full": {"class": CLASSES, "workloads": ("mlperf-1", "mlperf-8"), "steps": STEPS, "method": QUICK},
    },
    measure=measure,
    judge=judge,
    options={"class": CLASSES},
    shown=("rows",),
)
