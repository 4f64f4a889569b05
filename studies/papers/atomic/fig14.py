"""The prototype, an engine of which the figure shows: frames per second, which the text prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.atomic.cells import METHODS, NETWORKS, STORE
from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Verdict
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study
from studies.tiled_cells import WORK, Cell, Found
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOCK = 600e6
"""Cycles per second (section V-D)."""
WAYS = ("ls", "rammer", "atomic")
PRINTED = {"vgg19": (49.2, 57.9, 64.3), "resnet50": (156.2, 194.4, 223.9)}
"""Frames per second of the three (section V-D)."""
MEMORIES = {"": "atomic-2x2", ", DRAM twice as fast": "atomic-2x2[dram=42.667]"}
"""The preset, whose DRAM of 12.8 GB/s is assumed, and the same with another DRAM alone."""


def frames(study: Study, network: str, machine: str) -> list[Found]:
    """What the three come to on one sample."""
    seconds = float(study["seconds"])
    cells = [Cell(network, machine, METHODS[way], 1, "makespan", seconds) for way in WAYS]
    return study.cells(WORK, STORE, cells)


def measure(study: Study) -> Data:
    """A row per network and DRAM: frames per second, and the most that any plan has."""
    rows: list[Row] = []
    for network in study["networks"]:
        for words, machine in MEMORIES.items():
            runs = frames(study, network, machine)
            row: Row = {"network": f"{NETWORKS.get(network, network)}{words}"}
            row |= {way: CLOCK / run.cycles for way, run in zip(WAYS, runs, strict=True)}
            row["bound"] = CLOCK / max(run.bound for run in runs)
            if network in PRINTED:
                row |= {f"printed {way}": own for way, own in zip(WAYS, PRINTED[network], strict=True)}
            rows.append(row)
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Frames of the three, and how much faster atomic is than the others."""
    compared: list[Compared] = []
    moved, explained, above = [], [], []
    for row, other in zip(data["rows"][::2], data["rows"][1::2], strict=True):
        if "printed ls" not in row:
            continue
        for way in WAYS:
            what = f"{row['network']}: {way} [frames/s]"
            printed = row[f"printed {way}"]
            compared.append(Number(what, printed, row[way], "{:.1f}"))
            explained += [what] * Number(what, printed, other[way]).holds
            if printed > row["bound"]:
                above.append(f"{what} ({printed:.1f})")
        for way in WAYS[:-1]:
            printed, ours = (row[f"{kind}atomic"] / row[f"{kind}{way}"] for kind in ("printed ", ""))
            compared.append(Number(f"{row['network']}: atomic over {way}", printed, ours, "{:.2f}"))
        factor, faster = (own["atomic"] / own["ls"] for own in (row, other))
        moved.append(
            f"{row['network']}'s atomic from {row['atomic']:.0f} to {other['atomic']:.0f} frames per second "
            f"and its factor over LS from {factor:.2f} to {faster:.2f}"
        )
    certain = (
        "  Above what any plan reaches with the assumed DRAM are "
        f"{', '.join(above)}: it must have been faster."
        if above
        else ""
    )
    return Verdict(
        compared,
        differs="The text prints neither the prototype's DRAM nor its links and buffers.  A DRAM twice as "
        f"fast, the only change, takes {'; '.join(moved)}.{certain}",
        explained=explained,
        needed="Rates of the prototype's DRAM and links, and its buffers, would be needed.",
        best="; ".join(
            f"{row['network']}: no plan has more than {row['bound']:.0f} frames per second, atomic "
            f"{row['atomic']:.0f}"
            for row in data["rows"]
        )
        + ".",
    )


def draw(data: Data) -> Figure:
    """Bars by network and DRAM, with the printed frames."""
    figure, axes = canvas(1, 2.8)
    names = (*WAYS, "bound")
    series = {name: [row[name] for row in data["rows"]] for name in names}
    printed = {way: [row.get(f"printed {way}", float("nan")) for row in data["rows"]] for way in WAYS}
    grouped_bars(axes[0], [row["network"] for row in data["rows"]], series, printed)
    axes[0].tick_params(axis="x", labelrotation=0)
    axes[0].set_ylabel("frames per second")
    legend(axes[0], 5)
    return figure


FIGURE = PaperFigure(
    title="Frames per second of the prototype",
    claim="VGG 49.2 by LS, 57.9 by Rammer, 64.3 by atomic; ResNet-50 156.2, 194.4 and 223.9 (section V-D).",
    sizes={
        "smoke": {"networks": ("mlp",), "seconds": 0.1},
        "short": {"networks": tuple(PRINTED), "seconds": 2.0},
        "full": {"networks": tuple(PRINTED), "seconds": 60.0},
    },
    measure=measure,
    judge=judge,
    draw=draw,
    shown=("rows",),
)
