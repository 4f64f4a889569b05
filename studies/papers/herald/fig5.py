"""Utilization and EDP of three example layers on the NVDLA and Shi-diannao styles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.papers.figure import Data, PaperFigure, Row, Statement, Verdict, every_size
from studies.papers.herald.fig2 import RESOURCES
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from tilewright.formulation.limits import Limits
from tilewright.hardware.scheduling.herald.classes import make_system
from tilewright.report.plots.style import canvas
from tilewright.solvers.scheduling.herald.cost_tables.build import options_of
from tilewright.solvers.scheduling.herald.cost_tables.costs import cost_table
from tilewright.workloads.mapping.layer_text import parse_layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = {
    "1: early": "conv:K=16,C=8,P=112,Q=112,R=3,S=3",
    "2: late": "conv:K=512,C=512,P=7,Q=7,R=3,S=3",
    "3: depthwise": "conv:K=8,C=8,P=112,Q=112,R=3,S=3,groups=8",
}
"""Shapes in proportion as the text describes them: those of the drawing are not in it."""
STYLES = ("nvdla", "shidiannao")


def preferred(layer: str) -> dict[str, Any]:
    """Utilization and EDP of a layer on both styles, each with its best mapping."""
    operator = parse_layer(layer)[1]
    systems = {style: make_system(style, RESOURCES, [style]) for style in STYLES}
    table = cost_table([operator], [*systems.values()], Limits(threads=1))
    styles = {}
    for style, system in systems.items():
        option = options_of(operator, system, "edp", table)[0]
        utilization = operator.macs / (RESOURCES.pes * option.cycles)
        styles[style] = {"utilization": utilization, "edp": option.cycles * float(option.energy)}
    return styles


def measure(study: Study) -> Data:
    """A row per layer and style."""
    rows: list[Row] = []
    for name in study["layers"]:
        cell = study.cell("example layer", preferred, layer=LAYERS[name])
        for style, own in cell.items():
            rows.append(
                {
                    "layer": name,
                    "style": style,
                    "utilization [%]": 100 * own["utilization"],
                    "EDP [J cycle]": own["edp"] / 1e12,
                }
            )
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Layers 1 and 3 prefer Shi-diannao, layer 2 prefers NVDLA."""
    use = {(row["layer"], row["style"]): row["utilization [%]"] for row in data["rows"]}
    compared = []
    for name, liked, other in (
        ("1: early", "shidiannao", "nvdla"),
        ("2: late", "nvdla", "shidiannao"),
        ("3: depthwise", "shidiannao", "nvdla"),
    ):
        if (name, liked) in use:
            words = f"{use[name, liked]:.1f} % against {use[name, other]:.1f} %"
            compared.append(
                Statement(
                    f"layer {name}: {liked} is better utilized", words, use[name, liked] > use[name, other]
                )
            )
    return Verdict(
        compared,
        needed="The shapes in the drawing are not in the text; others of the same kind stand in their place.",
        best="Both styles have the best of all their mappings for each layer.",
    )


def draw(data: Data) -> Figure:
    """Utilization on the left, EDP on the right."""
    figure, axes = canvas(2, 2.6)
    layers = list(dict.fromkeys(row["layer"] for row in data["rows"]))
    for axis, column in zip(axes, ("utilization [%]", "EDP [J cycle]"), strict=True):
        series = {style: [row[column] for row in data["rows"] if row["style"] == style] for style in STYLES}
        grouped_bars(axis, layers, series, log=column.startswith("EDP"))
        axis.set_ylabel(column)
    legend(axes[0], 2)
    return figure


FIGURE = PaperFigure(
    title="Three layers on two styles",
    claim="Channels fill the NVDLA style's array and pixels the Shi-diannao style's, so that utilization "
    "and EDP differ "
    "dramatically.",
    sizes=every_size(layers=tuple(LAYERS)),
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("rows",),
)
