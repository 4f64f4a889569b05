"""Maelstrom's best partitions: ours, the printed ones, and these mirrored."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.fig11 import chosen
from studies.papers.herald.spaces import CLASSES, QUICK, STEPS, WORKLOADS, best_of, part_of, points_of
from studies.papers.study import Study
from tilewright.hardware.scheduling.herald.classes import TABLE_V


def measure(study: Study) -> Data:
    """A row per scenario: the best of the grid, the printed partition, and it with both columns exchanged."""
    rows: list[Row] = []
    for workload in chosen(study["workload"]):
        for size in chosen(study["class"]):
            points = points_of(study, workload, size)
            best = best_of(points)
            rates, pes = (
                TABLE_V[size, workload.removesuffix("-1")] if workload in WORKLOADS else ((4, 12), (128, 896))
            )
            printed = [[pe, rate] for pe, rate in zip(pes, rates, strict=True)]
            row: Row = {
                "scenario": f"{workload}, {size}",
                "best": best["edp"],
                "bound": min(p["bound"] for p in points),
            }
            for name, parts in (("printed", printed), ("exchanged", printed[::-1])):
                row[name] = part_of(study, workload, size, parts)["edp"]
            row["PEs and GB/s"] = best["parts"]
            row["printed partition"] = printed
            rows.append(row)
    shown: list[Row] = [
        {
            "scenario": row["scenario"],
            "best here (NVDLA / Shi-diannao)": _words(row["PEs and GB/s"]),
            "printed": _words(row["printed partition"]),
            "EDP of the printed over the best": row["printed"] / row["best"],
            "of the exchanged": row["exchanged"] / row["best"],
            "bound over the best": row["bound"] / row["best"],
        }
        for row in rows
    ]
    return {"rows": rows, "shown": shown}


def _words(parts: list[list[float]]) -> str:
    pes, rates = (" / ".join(f"{part[place]:g}" for part in parts) for place in (0, 1))
    return f"{pes} PEs, {rates} GB/s"


def judge(data: Data) -> Verdict:
    """Partitions are not trivial; printed partitions are the best."""
    compared: list[Compared] = []
    for row in data["shown"]:
        words = f"{row['EDP of the printed over the best']:.2f} times the best EDP"
        holds = row["EDP of the printed over the best"] < 1.1
        compared.append(Statement(f"{row['scenario']}: {row['printed']} is best", words, holds))
    mirrored = max(row["of the exchanged"] for row in data["shown"])
    straight = max(row["EDP of the printed over the best"] for row in data["shown"])
    return Verdict(
        compared,
        differs="On the classes measured here exchanging the printed columns alone, so that NVDLA has what "
        f"is printed for Shi-diannao, takes the EDP from {straight:.2f} to {mirrored:.2f} times the best at "
        "most; the text around the table, too, has more PEs for NVDLA.",
        needed="Which column is whose would be needed.",
        explained=[comparison.what for comparison in compared] if mirrored < 1.1 else (),
        best="The bound is the least of all partitions of the grid, so that no other partition or schedule "
        "is below it.",
    )


FIGURE = PaperFigure(
    title="Maelstrom's best partitions",
    claim="Partitions of PEs and bandwidth for nine scenarios, none of them even.",
    sizes={
        "smoke": {"workload": "handposex2", "class": "edge", "steps": {"edge": (128, 4)}, "method": QUICK},
        "short": {"workload": WORKLOADS, "class": "edge", "steps": STEPS, "method": QUICK},
        "full": {"workload": WORKLOADS, "class": CLASSES, "steps": STEPS, "method": "herald"},
    },
    measure=measure,
    judge=judge,
    options={"class": CLASSES, "workload": WORKLOADS},
    shown=("shown",),
)
