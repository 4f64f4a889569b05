"""EDP of ResNet-50 and UNet on one accelerator of each style, 256 PEs and 32 GB/s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from studies.papers.figure import Data, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.spaces import scheduled, workload
from studies.papers.pictures import grouped_bars
from studies.papers.study import Study
from tilewright.formulation.limits import Limits
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, make_system
from tilewright.report.plots.style import canvas
from tilewright.solvers.scheduling.herald.cost_tables.build import problem_from_table, workload_operators
from tilewright.solvers.scheduling.herald.cost_tables.costs import cost_table
from tilewright.workloads.catalog import resolve_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEEP = 64
"""Input channels of a cluster of the NVDLA style."""
STYLES = ("shidiannao", "nvdla", "eyeriss")
RESOURCES = AcceleratorClass("figure 2", 256, 32, 4 << 20, 16, 4)
"""The text prints PEs and bandwidth; the global memory is the edge class's."""


def styles(network: str) -> dict[str, Any]:
    """EDP of a network on each style, and of the best style for every layer."""
    work = workload(f"{network}x1")
    systems = {style: make_system(style, RESOURCES, [style]) for style in STYLES}
    table = cost_table(workload_operators(work), [*systems.values()], Limits(threads=1))
    problems = {style: problem_from_table(work, system, "edp", table) for style, system in systems.items()}
    schedules: dict[str, Any] = {style: scheduled(problem, "greedy") for style, problem in problems.items()}
    cycles, energy = 0.0, 0.0
    for options in zip(*(problem.tasks for problem in problems.values()), strict=True):
        own = [option for task in options for option in task.options]
        best = min(own, key=lambda option: option.cycles * option.energy)
        cycles, energy = cycles + best.cycles, energy + float(best.energy)
    return {
        **schedules,
        "best style of each layer": {"cycles": cycles, "energy": energy, "edp": cycles * energy},
    }


def deep_share(network: str) -> float:
    """Percent of a network's multiply-accumulates in layers with 64 input channels or more."""
    layers = resolve_model(network, 1).mac_layers
    deep = sum(layer.operator.macs for layer in layers if layer.operator.bounds.get("C", 1) >= DEEP)
    return 100 * deep / sum(layer.operator.macs for layer in layers)


def measure(study: Study) -> Data:
    """A row per network and style."""
    rows: list[Row] = []
    for network in study["networks"]:
        cell = study.cell("three styles", styles, network=network)
        rows += [{"network": network, "style": style, **own} for style, own in cell.items()]
    deep: list[Row] = [
        {"network": network, "share": study.cell("share of deep layers", deep_share, network=network)}
        for network in study["networks"]
    ]
    return {"rows": rows, "deep": deep}


def judge(data: Data) -> Verdict:
    """NVDLA is best for ResNet-50; on UNet it suffers, and row-stationary is efficient."""
    edp = {(row["network"], row["style"]): row["edp"] for row in data["rows"]}
    compared = []
    if ("resnet50", "nvdla") in edp:
        own = {style: edp["resnet50", style] for style in STYLES}
        words = ", ".join(f"{style} {value / own['nvdla']:.2f}" for style, value in own.items())
        compared.append(
            Statement("NVDLA has a low EDP on ResNet-50", words, min(own, key=lambda s: own[s]) == "nvdla")
        )
    if ("unet", "nvdla") in edp:
        own = {style: edp["unet", style] for style in STYLES}
        words = ", ".join(f"{style} {value / own['nvdla']:.2f}" for style, value in own.items())
        compared.append(
            Statement("NVDLA suffers on UNet, Eyeriss does not", words, own["eyeriss"] < own["nvdla"])
        )
    deep = data["deep"][-1]
    part = f"{deep['share']:.0f} % of {deep['network']}'s multiply-accumulates"
    share = f"{part} are in layers of 64 input channels or more, which fill clusters of the NVDLA style."
    best = [
        edp[network, "best style of each layer"] / min(edp[network, style] for style in STYLES)
        for network in dict.fromkeys(row["network"] for row in data["rows"])
    ]
    return Verdict(
        compared,
        differs=f"{share}  That MAESTRO's costs differ from the hierarchy model's is measured in "
        "[Herald](herald.md#where-this-differs-from-the-paper).",
        needed="MAESTRO's own energy and latency of these layers would be needed.",
        best="Every layer has the best of all mappings of its style; the best style for each layer alone "
        f"has {min(best):.2f} "
        "times the EDP of the best single style or more.",
    )


def draw(data: Data) -> Figure:
    """A panel per network."""
    networks = list(dict.fromkeys(row["network"] for row in data["rows"]))
    figure, axes = canvas(len(networks), 2.8)
    for axis, network in zip(axes, networks, strict=True):
        own = {row["style"]: row["edp"] / 1e21 for row in data["rows"] if row["network"] == network}
        grouped_bars(
            axis, [name.replace(" of each", "\nof each") for name in own], {"EDP": list(own.values())}
        )
        axis.set_title(network)
        axis.tick_params(axis="x", labelrotation=20)
    axes[0].set_ylabel("EDP [GJ cycle]")
    return figure


SHORT = {"networks": ("resnet50", "unet")}
FIGURE = PaperFigure(
    title="EDP of three styles on ResNet-50 and UNet",
    claim="NVDLA's style has a low EDP on ResNet-50 and suffers on UNet, where a row-stationary one is "
    "efficient.",
    sizes={"smoke": {"networks": ("handpose",)}, "short": SHORT, "full": SHORT},
    measure=measure,
    judge=judge,
    draw=draw,
)
