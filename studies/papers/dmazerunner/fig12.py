"""The least sum of the layers' EDPs over register files and scratchpads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.papers.dmazerunner.layers import LAYERS
from studies.papers.dmazerunner.memories import REGISTERS, SCRATCHPADS, explored
from studies.papers.figure import Data, PaperFigure, Statement, Verdict
from studies.papers.study import Study
from tilewright.report.plots.style import MARKERS, PALETTE, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def measure(study: Study) -> Data:
    """A row per design, and the best design of every layer."""
    cell = study.cell(
        "memories",
        explored,
        registers=list(study["registers"]),
        scratchpads=list(study["scratchpads"]),
        layers=list(study["layers"]),
    )
    return {"designs": cell["designs"], "layers": cell["layers"]}


def _size(text: str) -> int:
    value, unit = text.split()
    return int(value) * {"B": 1, "kB": 1024, "MB": 1 << 20}[unit]


def judge(data: Data) -> Verdict:
    """128 B registers or more are notably better; 256 B and 512 kB are best."""
    designs = [row for row in data["designs"] if row["value"] is not None]
    best = min(designs, key=lambda row: row["value"])
    least = {
        registers: min(row["value"] for row in designs if row["registers"] == registers)
        for registers in {row["registers"] for row in designs}
    }
    small = [value for registers, value in least.items() if _size(registers) < 128]
    large = [value for registers, value in least.items() if _size(registers) >= 128]
    pads = ", ".join(
        f"{row['value'] / best['value']:.3f} at {row['scratchpad']}"
        for row in designs
        if row["registers"] == best["registers"] and _size(row["scratchpad"]) >= 256 << 10
    )
    compared = [
        Statement(
            "registers of 256 B give the lowest EDPs",
            f"least at {best['registers']}",
            best["registers"] == "256 B",
        ),
        Statement(
            "a scratchpad of 512 kB gives the least total",
            f"least at {best['scratchpad']} ({pads})",
            best["scratchpad"] == "512 kB",
        ),
    ]
    if small and large:
        words = f"{min(small) / min(large):.2f} times as much below 128 B"
        compared.append(
            Statement("EDP is notably lower from 128 B of registers on", words, min(small) > min(large))
        )
    ranked = sorted(designs, key=lambda row: float(row["value"]))[:4]
    if len(designs) >= 4:
        words = ", ".join(f"{row['registers']} and {row['scratchpad']}" for row in ranked)
        compared.append(
            Statement(
                "the four best designs have 256 B", words, {row["registers"] for row in ranked} == {"256 B"}
            )
        )
    if {"512 B", "1 kB"} <= set(least):
        again = least["1 kB"] / least["512 B"]
        compared.append(Statement("EDP rises again beyond 512 B", f"{again:.2f} times at 1 kB", again > 1))
    solved = sum(row["status"] == "solved" for row in data["designs"])
    return Verdict(
        compared,
        differs="Table 4 shows that conv1 alone decides between 512 kB and 1 MB, and that the authors' "
        "search does not.",
        best=f"Of {len(data['designs'])} designs {solved} are solved to the optimum and the others "
        "discarded by a proven "
        f"bound; the best is {best['registers']} with {best['scratchpad']}.",
    )


def draw(data: Data) -> Figure:
    """A line per scratchpad over the register files; hollow marks are values of discarded designs."""
    figure, axes = canvas(1, 3.2)
    registers = sorted({row["registers"] for row in data["designs"]}, key=_size)
    pads = sorted({row["scratchpad"] for row in data["designs"]}, key=_size)
    for place, pad in enumerate(pads):
        own = {row["registers"]: row for row in data["designs"] if row["scratchpad"] == pad}
        points = [(x, own[name]) for x, name in enumerate(registers) if name in own and own[name]["value"]]
        colour = PALETTE[place % len(PALETTE)]
        heights = [row["value"] / 1e12 for _, row in points]
        axes[0].plot(
            [x for x, _ in points],
            heights,
            color=colour,
            marker=MARKERS[place % len(MARKERS)],
            markersize=4,
            label=pad,
        )
    axes[0].set_xticks(range(len(registers)), registers)
    axes[0].set_xlabel("register file of a PE")
    axes[0].set_ylabel("sum of layer EDPs [J cycle]")
    axes[0].set_yscale("log")
    axes[0].legend(title="scratchpad", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


FIGURE = PaperFigure(
    title="EDP over the sizes of memories",
    claim="EDP is notably lower from 128 B of registers on and rises again beyond 512 B; 256 B and 512 kB "
    "are best.",
    sizes={
        "smoke": {"layers": ("conv5_2",), "registers": ("256 B",), "scratchpads": ("128 kB",)},
        "short": {"layers": LAYERS, "registers": REGISTERS[2:], "scratchpads": SCRATCHPADS[2:]},
        "full": {"layers": LAYERS, "registers": REGISTERS, "scratchpads": SCRATCHPADS},
    },
    measure=measure,
    judge=judge,
    draw=draw,
)
