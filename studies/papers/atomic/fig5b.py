"""Convergence of annealing against a genetic search: variance of the layers' cycles over evaluations."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from studies.papers.atomic.fig5a import NETWORKS, problem_of
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict
from studies.papers.study import Study
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.heuristics.scheduling.tiled.annealing import (
    Annealing,
    SizedLayer,
    annealed_sizes,
    energy_of,
    sized_layers,
)
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, genetic_sizes
from tilewright.report.plots.style import PALETTE, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = (0, 1, 2, 5, 10, 20, 40, 80, 160, 320, 400)
GENERATIONS = (0, 1, 2, 4, 8)
POPULATION = 40


def trace(network: str, method: str, seed: int, steps: list[int]) -> list[list[float]]:
    """Evaluations of the energy and the least variance so far.

    Every state of a longer run is that of a shorter one with the same seed, so that it is run anew for each.
    """
    problem = problem_of(network)
    layers, points = sized_layers(problem, 0.5), []
    least = float("inf")
    for step in steps:
        numbers = random.Random(seed)
        if method == "annealing":
            sizes = annealed_sizes(problem, numbers, Annealing(printed=True, iterations=step))
            evaluations = step + 1
        else:
            sizes = genetic_sizes(
                problem, numbers, Genetics(printed=True, generations=step, population=POPULATION)
            )
            evaluations = POPULATION + step * (POPULATION - 1)
        least = min(
            least, energy_of(layers, [_place(*pair) for pair in zip(layers, sizes, strict=True)], True)
        )
        points.append([float(evaluations), least])
    return points


def _place(layer: SizedLayer, size: AtomSize) -> int:
    chosen = [size.rows, size.columns, size.inputs, size.outputs]
    return next(i for i, own in enumerate(layer.sizes.tolist()) if own == chosen)


def measure(study: Study) -> Data:
    """A row per network and method."""
    rows: list[Row] = []
    for network in study["networks"]:
        for method, steps in (("annealing", study["steps"]), ("genetic", study["generations"])):
            points = study.cell(
                "convergence", trace, network=network, method=method, seed=1, steps=list(steps)
            )
            rows.append({"network": network, "method": method, "points": points})
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Annealing converges more quickly and stops at a lower variance."""
    compared: list[Compared] = []
    for annealed, genetic in zip(data["rows"][::2], data["rows"][1::2], strict=True):
        last, other = annealed["points"][-1], genetic["points"][-1]
        by_then = [value for evaluations, value in genetic["points"] if evaluations <= last[0]]
        least = min(by_then, default=other[1])
        words = f"variance {last[1]:.3g} after {last[0]:.0f} evaluations, genetic {least:.3g}"
        compared.append(Statement(f"{annealed['network']}: annealing stops lower", words, last[1] < least))
    return Verdict(
        compared,
        needed="Operators and parameters of the paper's genetic search, which it does not print, would be "
        "needed.",
        differs="Where one of them differs, it is by evaluations of the variance, not by seconds.",
    )


def draw(data: Data) -> Figure:
    """Variance over evaluations by network, annealing in blue and genetic in orange."""
    networks = list(dict.fromkeys(row["network"] for row in data["rows"]))
    figure, axes = canvas(len(networks), 2.5)
    for axis, network in zip(axes, networks, strict=True):
        for row, colour in zip(
            (row for row in data["rows"] if row["network"] == network), PALETTE, strict=False
        ):
            xs, ys = zip(*row["points"], strict=True)
            axis.step(xs, [max(y, 1e-3) for y in ys], where="post", color=colour, label=row["method"])
        axis.set_yscale("log")
        axis.set_title(network)
    axes[0].set_ylabel("variance of cycles")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    figure.supxlabel("evaluations")
    return figure


SHORT = {"networks": NETWORKS[:1] + NETWORKS[3:], "steps": STEPS, "generations": GENERATIONS}
FIGURE = PaperFigure(
    title="Convergence of annealing and of a genetic search",
    claim="Annealing converges more quickly and stops at a lower variance.",
    sizes={
        "smoke": {"networks": ("mlp",), "steps": (0, 20), "generations": (0, 1)},
        "short": SHORT,
        "full": SHORT | {"networks": NETWORKS},
    },
    measure=measure,
    judge=judge,
    draw=draw,
)
