"""PE utilization of layers that are cut evenly over all engines, one layer at a time."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Verdict
from studies.papers.pictures import legend
from studies.papers.study import Study
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.costs import atom_costs
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, tiling
from tilewright.formulation.scheduling.tiled.trips import atom_shapes
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.report.plots.style import PALETTE, canvas
from tilewright.workloads.catalog import resolve_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = {"resnet50": 26.91, "inception-v3": 17.48, "nasnet-a-large": 18.34, "efficientnet-b0": 13.53}
CROWDED = 150
"""Layers from which on lines are thin."""
WAYS = {
    "rows and columns": ((1, 8, 8, 1),),
    "output channels": ((64, 1, 1, 1),),
    "rows and output channels": ((8, 8, 1, 1),),
    "input and output channels": ((8, 1, 1, 8),),
    "best of all even cuts": tuple(
        (channels, rows, columns, 64 // (channels * rows * columns))
        for channels in (1, 2, 4, 8, 16, 32, 64)
        for rows in (1, 2, 4, 8, 16, 32, 64)
        for columns in (1, 2, 4, 8)
        if 64 % (channels * rows * columns) == 0
    ),
}
"""Parts of output channels, rows, columns and input channels, 64 in all; the text names the directions "
"only."""


def share(unit: Unit, cut: tuple[int, int, int, int], machine: TiledMachine) -> float:
    """Utilization of all engines' PEs while the largest of the equal parts runs."""
    operator, engine = unit.layer.operator, machine.engine
    shape = shape_of(operator)
    outputs, rows, columns, inputs = (
        -(-size // parts) for size, parts in zip((*shape.sizes, shape.parts), cut, strict=True)
    )
    shapes = atom_shapes(operator, tiling(unit, AtomSize(rows, columns, inputs, outputs), 1))
    cycles = int(atom_costs(engine, shapes).cycles.max())
    return operator.macs / (machine.engines * engine.rows * engine.columns * engine.lanes**2 * cycles)


def shares(network: str, way: str, dataflow: str) -> list[tuple[int, float]]:
    """Multiply-accumulates and utilization of every layer that multiplies."""
    machine = load_tiled_machine(f"atomic-8x8[dataflow={dataflow}]")
    problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective("makespan"))
    units = [unit for unit in problem.units if unit.layer.operator.is_mac]
    known = {unit.layer.operator: unit for unit in units}
    best = {own: max(share(unit, cut, problem.machine) for cut in WAYS[way]) for own, unit in known.items()}
    return [(unit.layer.operator.macs, best[unit.layer.operator]) for unit in units]


def utilizations(network: str, way: str, dataflow: str) -> list[float]:
    """Utilization of every layer that multiplies."""
    return [used for _, used in shares(network, way, dataflow)]


def even_cycles(network: str, way: str, dataflow: str) -> float:
    """Cycles of all layers, each cut evenly over all engines and one after the other, without transfers."""
    engine = load_tiled_machine(f"atomic-8x8[dataflow={dataflow}]")
    peak = engine.engines * engine.engine.rows * engine.engine.columns * engine.engine.lanes**2
    return sum(macs / (peak * used) for macs, used in shares(network, way, dataflow))


def measure(study: Study) -> Data:
    """A row per network with the mean over layers of each way of cutting, and all layers of one way."""
    rows: list[Row] = []
    for network in study["networks"]:
        row: Row = {"network": network, "printed [%]": PRINTED.get(network, float("nan"))}
        for way in WAYS:
            own = study.cell("even cuts", utilizations, network=network, way=way, dataflow=study["dataflow"])
            row[f"{way} [%]"] = 100 * fmean(own)
            row[f"_{way}"] = own
        rows.append(row)
    return {
        "rows": rows,
        "shown": [{key: row[key] for key in row if not key.startswith("_")} for row in rows],
    }


def judge(data: Data) -> Verdict:
    """The average utilization of the four networks, by the way that comes nearest to all."""
    ways = [way for way in WAYS if not way.startswith("best")]
    off = {
        way: fmean(abs(row[f"{way} [%]"] / row["printed [%]"] - 1) for row in data["rows"])
        for way in ways
        if all(row["printed [%]"] > 0 for row in data["rows"])
    }
    if not off:
        return Verdict(needed="A network of the paper would be needed.")
    nearest = min(off, key=lambda way: off[way])
    compared: list[Compared] = [
        Number(
            f"{row['network']}, cut along {nearest} [%]", row["printed [%]"], row[f"{nearest} [%]"], "{:.2f}"
        )
        for row in data["rows"]
    ]
    best = [row["best of all even cuts [%]"] for row in data["rows"]]
    spans = [
        f"{row['network']} {min(row[f'{way} [%]'] for way in ways):.1f} to "
        f"{max(row[f'{way} [%]'] for way in ways):.1f}"
        for row in data["rows"]
    ]
    return Verdict(
        compared,
        differs="The text does not say along which dimensions layers are cut; changing that alone moves "
        "the mean utilization "
        f"as follows, in percent: {', '.join(spans)}.",
        needed="The directions of every layer would be needed.",
        explained=[
            comparison.what
            for comparison, row in zip(compared, data["rows"], strict=True)
            if min(row[f"{way} [%]"] for way in ways)
            <= row["printed [%]"]
            <= max(row[f"{way} [%]"] for way in ways)
        ],
        best="With the best even cut of every layer, by enumeration of all cuts into 64, the means are "
        f"{min(best):.1f} to {max(best):.1f} %: no even cut over all engines fills them.",
    )


def draw(data: Data) -> Figure:
    """Utilization of layer after layer, and its mean, as in the paper."""
    figure, axes = canvas(1, 0.5 + 1.5 * len(data["rows"]), rows=len(data["rows"]))
    ways = ("output channels", "best of all even cuts")
    for axis, row in zip(axes, data["rows"], strict=True):
        for way, colour in zip(ways, PALETTE, strict=False):
            own = [100 * part for part in row[f"_{way}"]]
            axis.step(
                range(len(own)),
                own,
                where="mid",
                color=colour,
                linewidth=1.0 if len(own) < CROWDED else 0.4,
                label=way,
            )
            axis.axhline(fmean(own), color=colour, linestyle="--", linewidth=1.0)
        if row["printed [%]"] > 0:
            axis.axhline(row["printed [%]"], color="#222222", linewidth=1.5, label="printed mean")
        axis.set_ylabel(f"{row['network']}\n[%]")
        axis.set_ylim(0, 102)
    axes[-1].set_xlabel("layer; dashed: mean")
    legend(axes[0])
    return figure


SHORT = {"networks": tuple(PRINTED), "dataflow": "kc"}
FIGURE = PaperFigure(
    title="PE utilization of layers cut evenly over all engines",
    claim="26.91 % on average on ResNet-50, 17.48 % Inception-v3, 18.34 % NasNet, 13.53 % EfficientNet.",
    sizes={"smoke": {"networks": ("alexnet",), "dataflow": "kc"}, "short": SHORT, "full": SHORT},
    measure=measure,
    judge=judge,
    draw=draw,
    options={"dataflow": ("kc", "yx")},
    shown=("shown",),
)
