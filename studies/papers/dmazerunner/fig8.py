"""Cycles of AlexNet's convolutions on the Eyeriss chip: ideal, row-stationary, and proven least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.papers.figure import Data, PaperFigure, Row, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.plots.style import canvas
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.catalog import resolve_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 4
CONVOLUTIONS = ("conv1", "conv2", "conv3", "conv4", "conv5")


def cycles(layer: str, batch: int) -> dict[str, Any]:
    """Ideal cycles of a layer, those of its least-energy mapping, and the least there are."""
    network, engine = resolve_model("alexnet", batch), load_engine("eyeriss-168")
    operator = next(
        item.operator for item in network.layers if item.name == layer and item.operator is not None
    )
    row: dict[str, Any] = {"ideal": operator.macs / engine.instances}
    for name in ("energy", "cycles"):
        result = solve(layer_problem(operator, engine, parse_objective(name)), "auto")
        assert result.evaluation is not None
        row[name], row[f"{name} status"] = result.evaluation.cycles, str(result.status)
    return row


def measure(study: Study) -> Data:
    """A row per layer."""
    rows: list[Row] = []
    for layer in study["layers"]:
        cell = study.cell("AlexNet on Eyeriss", cycles, layer=layer, batch=study["batch"])
        rows.append(
            {
                "layer": layer,
                "MACs / PEs": cell["ideal"],
                "least energy": cell["energy"],
                "least cycles": cell["cycles"],
                "proven": cell["cycles status"],
            }
        )
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """The paper prints one number, of times that are not in its text."""
    ratio = sum(row["least cycles"] for row in data["rows"]) / sum(row["MACs / PEs"] for row in data["rows"])
    proven = sum(row["proven"] == "optimal" for row in data["rows"])
    return Verdict(
        differs="The one printed number, 11 % between the model's and the chip's total cycles, needs the "
        "chip's processing "
        "times, which the text does not print.",
        needed="The chip's times per layer and the mappings that it ran would be needed.",
        best=f"The least cycles are proven on {proven} of {len(data['rows'])} layers and are {ratio:.2f} "
        "times the ideal "
        "multiply-accumulates over PEs: no mapping on this machine is faster.",
    )


def draw(data: Data) -> Figure:
    """Three bars for every layer; the middle one stands where the paper has the chip."""
    figure, axes = canvas(1, 2.8)
    names = ("MACs / PEs", "least energy", "least cycles")
    series = {name: [row[name] / 1e6 for row in data["rows"]] for name in names}
    grouped_bars(axes[0], [row["layer"] for row in data["rows"]], series)
    axes[0].set_ylabel("Mcycles, batch 4")
    legend(axes[0])
    return figure


FIGURE = PaperFigure(
    title="Cycles of AlexNet's convolutions on Eyeriss",
    claim="Estimated cycles are within 11 % of the chip's in total.",
    sizes={
        "smoke": {"layers": ("conv5",), "batch": 1},
        "short": {"layers": CONVOLUTIONS, "batch": BATCH},
        "full": {"layers": CONVOLUTIONS, "batch": BATCH},
    },
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("rows",),
)
