"""Histograms of the cycles of atoms whose sizes are annealed."""

from __future__ import annotations

import random
from math import ceil
from typing import TYPE_CHECKING, Any

from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.study import Study
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes, sized_layers
from tilewright.report.plots.style import PALETTE, canvas
from tilewright.workloads.catalog import resolve_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = ("resnet50", "inception-v3", "nasnet-a-large", "efficientnet-b0")
BINS = 24
NEAR = 0.3


def problem_of(network: str) -> TiledProblem:
    """A network on the paper's machine, one sample."""
    return TiledProblem(
        resolve_model(network, 1), load_tiled_machine("atomic-8x8"), tiled_objective("makespan")
    )


def atoms(network: str, printed: bool, seed: int) -> dict[str, Any]:
    """Cycles of every layer's atoms, and how many atoms it has."""
    problem = problem_of(network)
    sizes = annealed_sizes(problem, random.Random(seed), Annealing(printed=printed))
    cycles, counts = [], []
    for layer, size in zip(sized_layers(problem, 0.5), sizes, strict=True):
        chosen = [size.rows, size.columns, size.inputs, size.outputs]
        place = next(i for i, own in enumerate(layer.sizes.tolist()) if own == chosen)
        cycles.append(int(layer.cycles[place]))
        counts.append(int(layer.atoms[place]))
    return {"cycles": cycles, "atoms": counts}


def measure(study: Study) -> Data:
    """A row per network and way of annealing."""
    rows: list[Row] = []
    for network in study["networks"]:
        for name, printed in (("as printed", True), ("repaired", False)):
            cell = study.cell("cycles of atoms", atoms, network=network, printed=printed, seed=1)
            rows.append({"network": network, "annealing": name, **cell, "near": near(cell)})
    return {"rows": rows}


def near(row: Row) -> float:
    """The largest share of atoms whose cycles lie within 30 % of a common number."""
    pairs: list[tuple[int, int]] = sorted(zip(row["cycles"], row["atoms"], strict=True))
    within = [
        sum(count for own, count in pairs if (1 - NEAR) * middle <= own <= (1 + NEAR) * middle)
        for middle, _ in pairs
    ]
    return max(within) / sum(count for _, count in pairs)


def judge(data: Data) -> Verdict:
    """Most of the cycles lie in one region."""
    compared: list[Compared] = [
        Statement(
            f"{row['network']}: most cycles lie in one region",
            f"{100 * row['near']:.0f} % within 30 % of one number",
            row["near"] > 0.5,
        )
        for row in data["rows"]
        if row["annealing"] == "as printed"
    ]
    return Verdict(
        compared,
        needed="The parameters of annealing, which the text does not print, would be needed for the very "
        "histograms.",
    )


def draw(data: Data) -> Figure:
    """A histogram per network."""
    networks = list(dict.fromkeys(row["network"] for row in data["rows"]))
    figure, axes = canvas(len(networks), 2.5)
    for axis, network in zip(axes, networks, strict=True):
        own = [row for row in data["rows"] if row["network"] == network]
        most = max(max(row["cycles"]) for row in own)
        for row, colour in zip(own, PALETTE, strict=False):
            width = ceil(most / BINS)
            edges = [width * i for i in range(BINS + 1)]
            share = [100 * count / sum(row["atoms"]) for count in row["atoms"]]
            axis.hist(row["cycles"], edges, weights=share, color=colour, alpha=0.6, label=row["annealing"])
        axis.set_title(network)
        axis.tick_params(axis="x", labelrotation=30)
    axes[0].set_ylabel("atoms [%]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    figure.supxlabel("cycles of an atom")
    return figure


FIGURE = PaperFigure(
    title="Cycles of annealed atoms",
    claim="Most of the cycles of atoms are concentrated in one region.",
    sizes={"smoke": {"networks": ("mlp",)}, "short": {"networks": NETWORKS}, "full": {"networks": NETWORKS}},
    measure=measure,
    judge=judge,
    draw=draw,
)
