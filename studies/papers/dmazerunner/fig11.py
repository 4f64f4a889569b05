"""Tilings that are evaluated under each pruning, and what the pruning loses against the proven optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.dmazerunner_counting import count_tilings
from studies.papers.dmazerunner.layers import LAYERS, problem, solved
from studies.papers.figure import Data, Number, PaperFigure, Row, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study, number
from tilewright.heuristics.mapping.dmazerunner.prunings import Prunings, read_opts
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = {"none": "all valid", "1": "OPT1", "1-2": "OPT1-2", "1-3": "OPT1-3"}
PRINTED = (2.12e9, 2.57e6, 1.28e6, 2.35e5)
"""Methods evaluated under each, as printed in section 6.3."""
LOSSES = {"1": 2.0, "1-3": 2.56}
"""Percent of EDP lost in total, as printed."""
ONE_LAYER = {"conv5_2": (1.75e7, 753.0, 0.0), "conv5_1": (1.42e7, 877.0, 5.0)}
"""Methods without and with all prunings, and percent lost."""


def pruned(layer: str) -> dict[str, Any]:
    """Tilings left and the best EDP under each pruning, and the proven optimum."""
    stated = problem(layer, "edp")
    row: dict[str, Any] = {"optimum": solved(layer, "edp", "auto")["edp"]}
    for name in SETS:
        row[f"{name}: tilings"] = count_tilings(stated, Prunings(read_opts(name)))
        if name != "none":
            row[name] = solved(layer, "edp", f"dmazerunner[opt={name}]")["edp"]
    return row


def measure(study: Study) -> Data:
    """A row per layer."""
    rows: list[Row] = [
        {"layer": layer, **study.cell("prunings", pruned, layer=layer)} for layer in study["layers"]
    ]
    total: Row = {"layer": "all"}
    for name in rows[0]:
        if name != "layer":
            total[name] = sum(row[name] for row in rows)
    shown: list[Row] = [
        {
            "tilings": words,
            "count": total[f"{name}: tilings"],
            "printed": PRINTED[place],
            "EDP over the optima [%]": 0.0 if name == "none" else 100 * (total[name] / total["optimum"] - 1),
        }
        for place, (name, words) in enumerate(SETS.items())
    ]
    return {"rows": rows, "total": [total], "shown": shown}


def judge(data: Data) -> Verdict:
    """2.12E+09 to 2.35E+05 methods, 2.56 % lost; conv5_1 and conv5_2 alone."""
    compared: list[Number] = []
    if len(data["rows"]) == len(LAYERS):
        compared += [
            Number(f"methods, {row['tilings']}", row["printed"], row["count"], "{:.3g}")
            for row in data["shown"]
        ]
        losses = {name: row["EDP over the optima [%]"] for name, row in zip(SETS, data["shown"], strict=True)}
        compared += [
            Number(f"{SETS[name]}: EDP lost [%]", loss, losses[name], "{:.2f}")
            for name, loss in LOSSES.items()
        ]
    for row in data["rows"]:
        if row["layer"] in ONE_LAYER:
            whole, left, loss = ONE_LAYER[row["layer"]]
            compared.append(Number(f"{row['layer']}: methods", whole, row["none: tilings"], "{:.3g}"))
            compared.append(Number(f"{row['layer']}: methods, OPT1-3", left, row["1-3: tilings"], "{:.3g}"))
            lost = 100 * (row["1-3"] / row["optimum"] - 1)
            compared.append(Number(f"{row['layer']}: EDP lost, OPT1-3 [%]", loss, lost, "{:.2f}"))
    return Verdict(
        compared,
        differs="The spaces agree under all prunings, tiling by tiling with the released tool "
        "(`tests/heuristics/test_dmazerunner.py`); where the percentages differ is not told by what is "
        "published, and no "
        "measurement here shows it.",
        needed="How the paper forms its total, and its mapping of conv5_1, would be needed.",
        best="Losses are against the proven optimum of every layer.",
    )


def draw(data: Data) -> Figure:
    """Methods on a logarithmic axis, with the printed numbers, and total EDP over the optimum."""
    figure, axes = canvas(2, 2.8)
    names = [row["tilings"] for row in data["shown"]]
    whole = len(data["rows"]) == len(LAYERS)
    printed = {"here": PRINTED} if whole else None
    grouped_bars(axes[0], names, {"here": [row["count"] for row in data["shown"]]}, printed, log=True)
    axes[0].set_ylabel("methods evaluated")
    legend(axes[0])
    loss = [row["EDP over the optima [%]"] for row in data["shown"]]
    of_loss = {"EDP over the optimum": (0.0, LOSSES["1"], number(""), LOSSES["1-3"])} if whole else None
    grouped_bars(axes[1], names, {"EDP over the optimum": loss}, of_loss)
    axes[1].set_ylabel("[%]")
    legend(axes[1], 1)
    return figure


FIGURE = PaperFigure(
    title="Methods evaluated under each pruning, and the loss",
    claim="2.12E+09 methods become 2.35E+05 with OPT1-3 at 2.56 % more EDP.",
    sizes={"smoke": {"layers": ("conv5_2",)}, "short": {"layers": LAYERS}, "full": {"layers": LAYERS}},
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("shown",),
)
