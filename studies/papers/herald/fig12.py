"""Design spaces of single networks, four runs of UNet and of ResNet-50 on the cloud class."""

from __future__ import annotations

from studies.papers.figure import Compared, Data, Number, PaperFigure, Statement, Verdict
from studies.papers.herald import fig11
from studies.papers.herald.spaces import FEW, QUICK, best_fda, most_gained
from studies.papers.study import Study

PRINTED = {"unetx4": (26.4, 22.5, 11.7), "resnet50x4": (48.1, 29.0, 15.8)}
"""Percent of EDP that Maelstrom saves over the best monolith, of latency that the RDA saves, of energy "
"that it costs."""


def measure(study: Study) -> Data:
    """As figure 11, for single networks."""
    return fig11.measure(study)


def judge(data: Data) -> Verdict:
    """Improvements over the best monolithic design, and the RDA beside Maelstrom."""
    compared: list[Compared] = []
    certain = []
    for (workload, _), kinds in fig11.plots(data["rows"]).items():
        single = {kind: points[0] for kind, points in kinds.items() if kind not in fig11.SPACES}
        points = [point for own in kinds.values() for point in own]
        fda, maelstrom = best_fda(single), min(kinds["NVDLA + Shi-diannao"], key=lambda row: row["edp"])
        certain.append(100 * (1 - min(row["bound"] for row in kinds["NVDLA + Shi-diannao"]) / fda["edp"]))
        if workload in PRINTED:
            saved, faster, dearer = PRINTED[workload]
            ours = 100 * (1 - maelstrom["edp"] / fda["edp"])
            rda = single["RDA"]
            compared += [
                Number(f"{workload}: EDP below the best FDA [%]", saved, ours, "{:.1f}"),
                Number(
                    f"{workload}: RDA's latency below Maelstrom's [%]",
                    faster,
                    100 * (1 - rda["cycles"] / maelstrom["cycles"]),
                    "{:.1f}",
                ),
                Number(
                    f"{workload}: RDA's energy above Maelstrom's [%]",
                    dearer,
                    100 * (rda["energy"] / maelstrom["energy"] - 1),
                    "{:.1f}",
                ),
            ]
        compared.append(
            Statement(f"{workload}: the best FDA is on the front", "", fig11.on_front(fda, points))
        )
    return Verdict(
        [
            comparison
            if not isinstance(comparison, Statement)
            else Statement(comparison.what, "it is" if comparison.holds else "it is not", comparison.holds)
            for comparison in compared
        ],
        differs=f"Bounds prove that {most_gained(max(certain))}, so that the scheduler is not the cause.",
        needed="The paper's latencies and energies of the FDAs would be needed.",
        best="Every point has a bound.",
    )


FIGURE = PaperFigure(
    title="Design spaces of single networks",
    claim="Maelstrom has 26.4 % (UNet) and 48.1 % (ResNet-50) less EDP than the best monolith; RDAs are "
    "faster at more "
    "energy.",
    sizes={
        "smoke": {
            "workload": ("handposex4",),
            "class": "edge",
            "spaces": ("NVDLA + Shi-diannao",),
            "steps": {"edge": (512, 8)},
            "method": QUICK,
        },
        "short": {
            "workload": ("unetx4",),
            "class": "cloud",
            "spaces": ("NVDLA + Shi-diannao",),
            "steps": {"cloud": (2048, 64)},
            "method": QUICK,
            "monoliths": FEW,
        },
        "full": {
            "workload": tuple(PRINTED),
            "class": "cloud",
            "spaces": tuple(fig11.SPACES),
            "steps": {"cloud": (512, 32)},
            "method": "herald",
        },
    },
    measure=measure,
    judge=judge,
    draw=fig11.draw,
    shown=("shown",),
)
