"""EDP over the partition of PEs with equal halves of the bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.figure import Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.spaces import part_of, preset_of, resources
from studies.papers.pictures import lines
from studies.papers.study import Study
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(study: Study) -> Data:
    """A row per partition, from the Shi-diannao FDA to the NVDLA FDA."""
    size, step = study["class"], study["step"]
    own = resources(size, step, 1)
    rows: list[Row] = []
    for flow, pes in (("shidiannao", 0), ("nvdla", own.pes)):
        cell = preset_of(study, study["workload"], f"fda-{size}-{flow}", "greedy")
        rows.append({"PEs for NVDLA": pes, **cell})
    half = own.bandwidth // 2
    for pes in range(step, own.pes, step):
        parts = [[pes, half], [own.pes - pes, half]]
        cell = part_of(study, study["workload"], size, parts)
        rows.append({"PEs for NVDLA": pes, **cell})
    return {"rows": sorted(rows, key=lambda row: float(row["PEs for NVDLA"]))}


def judge(data: Data) -> Verdict:
    """The even split has 17 % more EDP than the best."""
    inner = data["rows"][1:-1]
    best = min(inner, key=lambda row: row["edp"])
    total = data["rows"][-1]["PEs for NVDLA"]
    even = min(inner, key=lambda row: abs(row["PEs for NVDLA"] - total / 2))
    over = 100 * (even["edp"] / best["edp"] - 1)
    share = best["PEs for NVDLA"] / total
    gaps = [1 - row["bound"] / row["edp"] for row in inner]
    certain = 100 * (even["bound"] / best["edp"] - 1)
    return Verdict(
        (
            Number("even split over the best partition [%]", 17.0, over, "{:.1f}"),
            Statement(
                "the even split is not the best",
                f"best at {100 * share:.0f} % of the PEs for NVDLA",
                over > 0.1,
            ),
        ),
        differs="The curve depends on the costs of layers, which are not MAESTRO's here; no measurement "
        "with MAESTRO's "
        "costs of this workload is at hand.",
        needed="MAESTRO's costs of the workload would be needed.",
        best=f"Herald's schedules are at most {100 * max(gaps):.0f} % from the bounds of their partitions"
        + (
            f"; no schedule on the even split is within {certain:.1f} % of the best partition's."
            if certain > 0
            else "."
        ),
    )


def draw(data: Data) -> Figure:
    """Herald's schedules and the bound of each partition."""
    figure, axes = canvas(1, 2.8)
    xs = [row["PEs for NVDLA"] for row in data["rows"]]
    lines(
        axes[0],
        xs,
        {
            "Herald's schedule": [row["edp"] / 1e21 for row in data["rows"]],
            "bound of any schedule": [row["bound"] / 1e21 for row in data["rows"]],
        },
    )
    axes[0].set_yscale("log")
    axes[0].set_xlabel("PEs for NVDLA; the others for Shi-diannao; at the ends the FDAs with all bandwidth")
    axes[0].set_ylabel("EDP [GJ cycle]")
    axes[0].legend()
    return figure


FIGURE = PaperFigure(
    title="EDP over the partition of PEs",
    claim="With equal bandwidth the even split of PEs has 17 % more EDP than the best one (AR/VR-A, cloud).",
    sizes={
        "smoke": {"workload": "handposex2", "class": "edge", "step": 512, "method": "herald"},
        "short": {"workload": "ar-vr-a", "class": "cloud", "step": 2048, "method": "herald[feedback=loads]"},
        "full": {"workload": "ar-vr-a", "class": "cloud", "step": 256, "method": "herald"},
    },
    measure=measure,
    judge=judge,
    draw=draw,
)
