"""The proven best EDP and its cycles for seventeen further dataflow mechanisms."""

from __future__ import annotations

from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from studies.papers.dmazerunner.fig9a import MECHANISMS
from studies.papers.dmazerunner.layers import LAYERS, LOOPS, mechanism, solved
from studies.papers.figure import Data, PaperFigure, Row, Statement, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = tuple(
    pair for pair in ("|".join(two) for two in combinations(LOOPS, 2)) if pair not in MECHANISMS.values()
)
REDUCING = ("Fy|Fx", "C|Fx", "Ox|Fy")
"""Mechanisms that the text names as slow on conv1: they reduce sums between PEs."""


def paper_name(loops: str) -> str:
    """``P|Q`` as the paper writes it."""
    return "|".join(LOOPS[loop] for loop in loops.split("|"))


def measure(study: Study) -> Data:
    """A row per mechanism with the EDP and cycles of every layer."""
    rows: list[Row] = []
    for loops in study["mechanisms"]:
        row: Row = {"mechanism": paper_name(loops)}
        for layer in study["layers"]:
            cell = study.cell(
                "mechanism", solved, layer=layer, objective="edp", method="auto", demands=mechanism(loops)
            )
            row[layer], row[f"{layer}: cycles"] = cell.get("edp"), cell.get("cycles")
            row["proven"] = row.get("proven", 0) + (cell["status"] in ("optimal", "infeasible"))
        rows.append(row)
    return {"rows": rows, "layers": [{"layer": layer} for layer in study["layers"]]}


def judge(data: Data) -> Verdict:
    """Similar optima for most mechanisms; those that reduce between PEs are worse on conv1."""
    layers = [row["layer"] for row in data["layers"]]
    spreads = {}
    for layer in [layer for layer in layers if layer != "conv1"] or layers:
        known = [row[layer] for row in data["rows"] if row[layer] is not None]
        spreads[layer] = median(known) / min(known)
    widest = max(spreads, key=lambda layer: spreads[layer])
    compared = [
        Statement(
            "mechanisms have similar optima on layers after conv1",
            f"median over least mechanism: {spreads[widest]:.2f} times at most ({widest})",
            max(spreads.values()) < 2,
        )
    ]
    slow = [row["conv1"] for row in data["rows"] if "conv1" in row and row["mechanism"] in REDUCING]
    rest = [row["conv1"] for row in data["rows"] if row.get("conv1") and row["mechanism"] not in REDUCING]
    if slow and rest:
        ratio = min(slow) / median(rest)
        words = f"least of them is {ratio:.2f} times the others' median"
        compared.append(Statement("Fy|Fx, C|Fx and Ox|Fy have a high EDP on conv1", words, ratio > 1))
    proven, asked = sum(row["proven"] for row in data["rows"]), len(layers) * len(data["rows"])
    return Verdict(
        compared,
        differs=f"On {widest} the median over all mechanisms is {spreads[widest]:.2f} times the least one.",
        best=f"{proven} of {asked} optima (mechanism and layer) are proven, those without any mapping "
        "among them.",
    )


def draw(data: Data) -> Figure:
    """EDP of every layer above, cycles of all layers below, by mechanism."""
    layers = [row["layer"] for row in data["layers"]]
    figure, axes = canvas(1, 4.4, rows=2, sharex=True)
    names = [row["mechanism"] for row in data["rows"]]
    nan = float("nan")
    series = {
        layer: [nan if row[layer] is None else row[layer] / 1e12 for row in data["rows"]] for layer in layers
    }
    grouped_bars(axes[0], names, series, log=True)
    axes[0].set_ylabel("least EDP [J cycle]")
    legend(axes[0], len(layers))
    total = [sum(row[f"{layer}: cycles"] or nan for layer in layers) / 1e6 for row in data["rows"]]
    grouped_bars(axes[1], names, {"cycles": total}, log=True)
    axes[1].set_ylabel("cycles of all layers [M]")
    axes[1].tick_params(axis="x", labelrotation=60)
    return figure


SHORT = {"layers": LAYERS, "mechanisms": OTHERS}
FIGURE = PaperFigure(
    title="Optima of seventeen further mechanisms",
    claim="Optima are similar; Fy|Fx, C|Fx and Ox|Fy are high at least on conv1, where sums are reduced "
    "between PEs.",
    sizes={"smoke": {"layers": ("conv5_2",), "mechanisms": ("N|K", "C|P")}, "short": SHORT, "full": SHORT},
    measure=measure,
    judge=judge,
    draw=draw,
)
