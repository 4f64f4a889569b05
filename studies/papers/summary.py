"""Five papers in one picture: the published heuristic, our best answer and our bound, by EDP.

    python -m studies summary

Every bar is the geometric mean of EDP over the paper's instances, our best answer being 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from studies.papers.atomic.cells import least
from studies.papers.dmazerunner.fig11 import pruned
from studies.papers.figure import Row
from studies.papers.herald.spaces import WORKLOADS, preset_of
from studies.papers.kapla.chains import INFERRED, OTHERS, PROVEN
from studies.papers.kapla.chains import cell as chain
from studies.papers.set.trees import SIZES as TREES
from studies.papers.set.trees import annealed, answers, cell, label
from studies.papers.study import Study
from studies.tiled import PAPER
from studies.tiled_cells import WORK as PLANS
from studies.tiled_cells import Cell
from tilewright.report.plots.style import PALETTE, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = {
    "smoke": {
        "layers": ("conv5_2",),
        "herald": (("handposex2", "hda-edge-maelstrom"),),
        "networks": ("mlp",),
        "kapla": INFERRED["smoke"],
        "trees": TREES["smoke"]["situations"],
        "annealing": TREES["smoke"]["annealing"],
        "seconds": 0.3,
        "plans": 0.3,
    },
    "short": {
        "layers": ("conv1", "conv2_2", "conv3_2", "conv4_2", "conv5_1", "conv5_2"),
        "herald": tuple((name, "hda-edge-maelstrom") for name in WORKLOADS),
        "networks": ("resnet50", "efficientnet-b0"),
        "kapla": INFERRED["short"],
        "trees": TREES["short"]["situations"],
        "annealing": TREES["short"]["annealing"],
        "seconds": TREES["short"]["seconds"],
        "plans": 3.0,
    },
}
"""The instances of every paper; ``full`` has those of ``short`` with longer searches."""
SIZES["full"] = SIZES["short"] | {"seconds": 60.0, "plans": 60.0}

Instances = list[Row]


def _dmazerunner(study: Study) -> Instances:
    """Six layers: OPT1-3, the proven optimum twice."""
    rows = []
    for layer in study["layers"]:
        own = study.cell("prunings", pruned, layer=layer)
        rows.append(
            {"instance": layer, "published": own["1-3"], "best": own["optimum"], "bound": own["optimum"]}
        )
    return rows


def _herald(study: Study) -> Instances:
    """Workloads on Maelstrom: Herald's schedule, ours, and the bound of our search."""
    rows = []
    for workload, system in study["herald"]:
        herald = preset_of(study, workload, system, "herald")
        ours = preset_of(study, workload, system, "cpsat", study["seconds"])
        best, bound = min(herald["edp"], ours["edp"]), max(herald["bound"], ours["bound"])
        rows.append(
            {"instance": f"{workload} on {system}", "published": herald["edp"], "best": best, "bound": bound}
        )
    return rows


def _kapla(study: Study) -> Instances:
    """Networks of figure 9: KAPLA by its loose estimate, the proven best chain and its bound."""
    own, rows = replace(study, values=study["kapla"]), []
    for network in own["networks"]:
        printed, proven = (
            chain(own, network, "edp", method) for method in (OTHERS["K, loose estimate"], PROVEN)
        )
        rows.append(
            {
                "instance": network,
                "published": printed["value"],
                "best": proven["value"],
                "bound": proven["bound"],
            }
        )
    return rows


def _atomic(study: Study) -> Instances:
    """Networks at batch 1: the pipeline as printed, our plan, and the bound over all plans."""
    rows = []
    for network in study["networks"]:
        cells = [
            Cell(network, "atomic-8x8[link=16]", method, 1, "edp", float(study["plans"]))
            for method in (PAPER, "atomic", "ls")
        ]
        printed, *ours = study.cells(PLANS, "tiled.sqlite", cells)
        best = min(own.cycles * own.total_energy for own in (printed, *ours) if own.is_plan)
        bound = study.cell("bound over all sizes", least, network=network, batch=1, link=16, options="")
        rows.append(
            {
                "instance": network,
                "published": printed.cycles * printed.total_energy,
                "best": best,
                "bound": bound["cycles"] * bound["energy"],
            }
        )
    return rows


def _set(study: Study) -> Instances:
    """Situations of figure 9: SET's annealing, the best tree known, and the bound over all trees."""
    rows = []
    for place in study["trees"]:
        situation = tuple(place)
        others = [cell(situation, method, 1, study["seconds"]) for method in ("set", "tangram", "bound")]
        published, ours, tangram, bound = answers(study, [annealed(study, situation, 1), *others])
        best = min(published.value, ours.value, tangram.value)
        rows.append(
            {"instance": label(situation), "published": published.value, "best": best, "bound": bound.bound}
        )
    return rows


PAPERS: dict[str, Callable[[Study], Instances]] = {
    "dMazeRunner": _dmazerunner,
    "Herald": _herald,
    "KAPLA": _kapla,
    "Atomic Dataflow": _atomic,
    "SET": _set,
}


def measure(study: Study) -> list[Row]:
    """A row per paper: geometric means over its instances, and what they are."""
    rows: list[Row] = []
    for paper, instances in PAPERS.items():
        own = instances(study)
        means = {
            name: _mean([row[name] / row["best"] for row in own]) for name in ("published", "best", "bound")
        }
        rows.append({"paper": paper, **means, "instances": "; ".join(row["instance"] for row in own)})
    return rows


def _mean(ratios: list[float]) -> float:
    product = 1.0
    for ratio in ratios:
        product *= ratio ** (1 / len(ratios))
    return product


def draw(rows: list[Row]) -> Figure:
    """Three bars for every paper."""
    figure, axes = canvas(1, 2.9)
    names = {"published": "published heuristic", "best": "our best", "bound": "our bound: none is below"}
    for place, (name, words) in enumerate(names.items()):
        heights = [row[name] for row in rows]
        left = [x + 0.27 * (place - 1) for x in range(len(rows))]
        axes[0].bar(left, heights, 0.25, color=(PALETTE[1], PALETTE[0], PALETTE[6])[place], label=words)
        for x, height in zip(left, heights, strict=True):
            axes[0].text(x, height, f"{height:.2f}", ha="center", va="bottom", fontsize=8)
    axes[0].set_xticks(range(len(rows)), [row["paper"] for row in rows])
    axes[0].set_ylabel("EDP, our best = 1")
    axes[0].grid(visible=False, axis="x")
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure
