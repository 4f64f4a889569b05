"""Design spaces of two- and three-way HDAs: latency and energy of every partition, monoliths labelled."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict
from studies.papers.herald.spaces import (
    CLASSES,
    FEW,
    MAELSTROM,
    QUICK,
    STEPS,
    WORKLOADS,
    best_fda,
    best_of,
    most_gained,
    points_of,
    singles_of,
)
from studies.papers.study import Study
from tilewright.report.plots.style import MARKERS, PALETTE, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPACES = {
    "NVDLA + Shi-diannao": MAELSTROM,
    "Shi-diannao + Eyeriss": ("shidiannao", "eyeriss"),
    "Eyeriss + NVDLA": ("eyeriss", "nvdla"),
    "three-way": ("nvdla", "shidiannao", "eyeriss"),
}

GAINS = (
    "HDA's latency below the best FDA",
    "HDA's energy below the best FDA",
    "RDA's latency below Maelstrom's",
    "RDA's energy above Maelstrom's",
)
BY_WORKLOAD = {
    "ar-vr-a": (63.26, 4.05, 22.9, 18.7),
    "ar-vr-b": (86.8, 6.61, 21.5, 15.5),
    "mlperf-1": (48.1, 4.4, 24.3, 18.9),
}
"""These in percent, over all classes."""


def chosen(value: object) -> tuple[str, ...]:
    """What the command line names alone, or a size lists."""
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]


def measure(study: Study) -> Data:
    """A row per point of every plot."""
    rows: list[Row] = []
    for workload in chosen(study["workload"]):
        for size in chosen(study["class"]):
            plot = {"workload": workload, "class": size}
            rows += [
                {**plot, "kind": name, **cell} for name, cell in singles_of(study, workload, size).items()
            ]
            for name in study["spaces"]:
                steps = list(study["steps"][size])
                if len(SPACES[name]) > 2:
                    steps = [2 * steps[0], steps[1]]
                points = points_of(study, workload, size, SPACES[name], steps)
                rows += [{**plot, "kind": name, **point} for point in points]
    return {"rows": rows, "shown": _best(rows)}


def plots(rows: list[Row]) -> dict[tuple[str, str], dict[str, list[Row]]]:
    """The points by plot and kind."""
    by_plot: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows:
        by_plot.setdefault((row["workload"], row["class"]), {}).setdefault(row["kind"], []).append(row)
    return by_plot


def _best(rows: list[Row]) -> list[Row]:
    shown: list[Row] = []
    for (workload, size), kinds in plots(rows).items():
        for kind, points in kinds.items():
            best = best_of(points)
            parts = " / ".join(f"{pes:g} PEs, {rate:g} GB/s" for pes, rate in best.get("parts", []))
            shown.append(
                {
                    "workload, class": f"{workload}, {size}",
                    "kind": kind,
                    "points": len(points),
                    "best partition": parts,
                    "Mcycles": best["cycles"] / 1e6,
                    "mJ": best["energy"] / 1e9,
                    "EDP [GJ cycle]": best["edp"] / 1e21,
                    "least bound": min(row["bound"] for row in points) / 1e21,
                }
            )
    return shown


def on_front(point: Row, points: list[Row]) -> bool:
    """Whether no other point is better in both latency and energy."""
    return not any(
        other["cycles"] <= point["cycles"] and other["energy"] <= point["energy"] and other is not point
        for other in points
    )


def judge(data: Data) -> Verdict:
    """HDAs and RDAs on the front and FDAs not; 73.6 % less EDP than the best FDA."""
    gains, latency, energy, over_rda, hda_front, fda_front, certain = [], [], [], [], 0, 0, []
    every = plots(data["rows"])
    own: dict[str, list[list[float]]] = {}
    for (workload, _), kinds in every.items():
        single = {kind: points[0] for kind, points in kinds.items() if kind not in SPACES}
        fda = best_fda(single)
        points = [point for kind in kinds.values() for point in kind]
        hdas = [point for kind in SPACES for point in kinds.get(kind, ())]
        best = best_of(hdas)
        maelstrom = best_of(kinds["NVDLA + Shi-diannao"])
        gains.append(100 * (1 - best["edp"] / fda["edp"]))
        certain.append(100 * (1 - min(row["bound"] for row in hdas) / fda["edp"]))
        latency.append(100 * (1 - maelstrom["cycles"] / fda["cycles"]))
        energy.append(100 * (1 - maelstrom["energy"] / fda["energy"]))
        over_rda.append(100 * (1 - maelstrom["energy"] / single["RDA"]["energy"]))
        rda = single["RDA"]
        own.setdefault(workload, []).append(
            [
                *(100 * (1 - best[of] / fda[of]) for of in ("cycles", "energy")),
                100 * (1 - rda["cycles"] / maelstrom["cycles"]),
                100 * (rda["energy"] / maelstrom["energy"] - 1),
            ]
        )
        hda_front += any(on_front(point, points) for point in hdas)
        fda_front += not any(on_front(row, points) for kind, row in single.items() if kind.startswith("FDA"))
    count = len(every)
    compared: list[Compared] = [
        Number("EDP below the best FDA, mean [%]", 73.6, sum(gains) / count, "{:.1f}"),
        Number("Maelstrom: latency below the best FDA [%]", 65.3, sum(latency) / count, "{:.1f}"),
        Number("Maelstrom: energy below the best FDA [%]", 5.0, sum(energy) / count, "{:.1f}"),
        Number("Maelstrom: energy below the RDA [%]", 22.0, sum(over_rda) / count, "{:.1f}"),
        Statement(
            "the best HDAs are on the Pareto front", f"in {hda_front} of {count} plots", hda_front == count
        ),
        Statement("no FDA is on it", f"in {fda_front} of {count} plots", fda_front == count),
    ]
    for workload, ratios in own.items():
        printed = BY_WORKLOAD.get(workload, ())
        for what, number, ours in zip(GAINS, printed, zip(*ratios, strict=True), strict=False):
            compared.append(Number(f"{workload}: {what} [%]", number, sum(ours) / len(ours), "{:.1f}"))
    return Verdict(
        compared,
        differs=f"Bounds prove that {most_gained(max(certain))}, so that the scheduler is not the cause.  "
        "Neither MAESTRO's costs, rebuilt from its program, nor the smallest blocking take it away on edge "
        "([Herald](herald.md#where-this-differs-from-the-paper)).",
        needed="The paper's latencies of the FDAs would be needed.",
        best="Every point has a bound; the table has the least of each space beside its best EDP.",
    )


def draw(data: Data) -> Figure:
    """A plot per workload and class, as in the paper."""
    from matplotlib.ticker import LogLocator, NullFormatter

    every = plots(data["rows"])
    columns = min(3, len(every))
    lines = -(-len(every) // columns)
    figure, axes = canvas(columns, 0.7 + 3.3 * lines, rows=lines)
    for axis in axes[len(every) :]:
        axis.set_visible(False)
    for axis, ((workload, size), kinds) in zip(axes, every.items(), strict=False):
        place = 0
        middle = median(row["cycles"] / 1e6 for points in kinds.values() for row in points)
        for kind, points in kinds.items():
            xs, ys = (
                [row[name] / unit for row in points] for name, unit in (("cycles", 1e6), ("energy", 1e9))
            )
            if kind in SPACES:
                colour = PALETTE[list(SPACES).index(kind)]
                axis.plot(xs, ys, ".", color=colour, markersize=5, label=f"HDA {kind}")
            else:
                axis.plot(xs, ys, MARKERS[place % len(MARKERS)], color="#333333", markersize=5)
                side = -1 if xs[0] > middle else 1
                axis.annotate(
                    kind,
                    (xs[0], ys[0]),
                    xytext=(5 * side, 3),
                    ha="left" if side > 0 else "right",
                    textcoords="offset points",
                    fontsize=7,
                )
                place += 1
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("latency [Mcycles]")
        axis.set_title(f"{workload}, {size}")
    axes[0].set_ylabel("energy [mJ]")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2 if columns < 2 else 4)
    return figure


FIGURE = PaperFigure(
    title="Design spaces of HDAs",
    claim="The best HDAs have 73.6 % less EDP than the best FDAs on average and lie, like RDAs, on the "
    "Pareto front.",
    sizes={
        "smoke": {
            "workload": "handposex2",
            "class": "edge",
            "spaces": ("NVDLA + Shi-diannao",),
            "steps": {"edge": (512, 8)},
            "method": QUICK,
        },
        "short": {
            "workload": WORKLOADS,
            "class": "edge",
            "spaces": ("NVDLA + Shi-diannao",),
            "steps": STEPS,
            "method": QUICK,
            "monoliths": FEW,
        },
        "full": {
            "workload": WORKLOADS,
            "class": CLASSES,
            "spaces": tuple(SPACES),
            "steps": {"edge": (64, 4), "mobile": (256, 8), "cloud": (512, 32)},
            "method": "herald",
        },
    },
    measure=measure,
    judge=judge,
    draw=draw,
    options={"class": CLASSES, "workload": WORKLOADS},
    shown=("shown",),
)
