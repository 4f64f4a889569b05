"""Seconds of scheduling a workload on two and three sub-accelerators."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.spaces import on_preset
from studies.papers.study import Study

PRINTED = {"ar-vr-a": (448, 2.89, 4.32), "ar-vr-b": (618, 3.98, 10.74), "mlperf-1": (181, 1.61, 3.22)}
"""Layers, seconds with two and with three sub-accelerators, on an i9-9880H."""
SYSTEMS = ("hda-{}-maelstrom", "hda-{}-nvdla-shidiannao-eyeriss")


def measure(study: Study) -> Data:
    """A row per workload and number of sub-accelerators."""
    rows: list[Row] = []
    for workload in study["workloads"]:
        for count, system in enumerate(SYSTEMS, start=2):
            cell = study.cell(
                "seconds of scheduling",
                on_preset,
                name=workload,
                system=system.format(study["class"]),
                method="herald",
                seconds=None,
            )
            layers, *seconds = PRINTED.get(workload, (0, 0.0, 0.0))
            rows.append(
                {
                    "workload": workload,
                    "layers": int(cell["layers"]),
                    "printed layers": layers,
                    "sub-accelerators": count,
                    "seconds": cell["seconds"],
                    "printed seconds": seconds[count - 2],
                    "ms per layer": 1000 * cell["seconds"] / cell["layers"],
                    "Herald's EDP over the bound": cell["edp"] / cell["bound"],
                }
            )
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Numbers of layers; 11.09 ms per layer and design."""
    compared: list[Compared] = []
    for row in data["rows"]:
        if row["printed layers"] and row["sub-accelerators"] == 2:
            compared.append(
                Number(f"{row['workload']}: layers", row["printed layers"], row["layers"], "{:.0f}")
            )
    mean = sum(row["ms per layer"] for row in data["rows"]) / len(data["rows"])
    words = f"{mean:.2f} ms on this machine"
    compared.append(Statement("11.09 ms per layer and design on an i9-9880H", words, mean < 2 * 11.09))
    return Verdict(
        compared,
        differs="Layers here are those that multiply and accumulate; which others the paper counts is not "
        "printed.  Seconds "
        "of two processors are not compared number by number.",
        needed="The paper's lists of layers would be needed.",
        best="The last column is how far Herald's schedule is above what is proven.",
    )


FIGURE = PaperFigure(
    title="Seconds of scheduling",
    claim="1.61 to 10.74 s a workload, 11.09 ms per layer and design.",
    sizes={
        "smoke": {"workloads": ("handposex2",), "class": "edge"},
        "short": {"workloads": ("ar-vr-a",), "class": "edge"},
        "full": {"workloads": tuple(PRINTED), "class": "cloud"},
    },
    measure=measure,
    judge=judge,
    shown=("rows",),
)
