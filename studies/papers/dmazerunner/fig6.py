"""Orderings of unique reuse: 5 of 24 for four loops, from plain enumeration and from algorithm 2."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from studies.papers.figure import Data, Number, PaperFigure, Row, Verdict, every_size
from studies.papers.study import Study
from tilewright.heuristics.mapping.dmazerunner.orderings import loop_orderings
from tilewright.report.plots.style import LOADS, canvas
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

TRIPS = {"N": 2, "C": 4, "R": 3, "K": 8}
"""Of the paper's four loops n, c, fy and m: 192 iterations; the text prints N = 2, 12 for c and fy "
"together."""


def reuse(operator: Operator, ordering: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Algorithm 1, without looking at the project's own: per operand its loops of reuse, innermost first."""
    reused = {}
    for tensor in operator.tensors:
        loops = []
        for loop in reversed(ordering):
            if loop in tensor.dims:
                break
            loops.append(loop)
        reused[tensor.name] = tuple(sorted(loops))
    return reused


def enumerated(layer: str) -> list[Row]:
    """Every ordering of a layer's loops by its reuse: one row for each that is unique."""
    operator = parse_layer(layer)[1]
    loops = [name for name, bound in operator.bounds.items() if bound > 1]
    counts: dict[tuple[tuple[str, tuple[str, ...]], ...], list[tuple[str, ...]]] = {}
    for ordering in permutations(loops):
        counts.setdefault(tuple(reuse(operator, ordering).items()), []).append(ordering)
    rows: list[Row] = []
    for key, same in counts.items():
        row: Row = {"schedule, innermost last": " ".join(same[0]), "orderings alike": len(same)}
        for tensor, inner in key:
            row[f"reuse of {tensor}"] = " x ".join(inner) or "-"
            row[f"_{tensor}"] = _product(operator, inner)
        rows.append(row)
    return rows


def _product(operator: Operator, loops: Sequence[str]) -> int:
    product = 1
    for loop in loops:
        product *= operator.bounds[loop]
    return product


def listed(layer: str) -> int:
    """How many orderings algorithm 2 lists."""
    return len(loop_orderings(parse_layer(layer)[1]))


def tables(study: Study) -> Data:
    """The enumeration of the study's layer, and what algorithm 2 lists."""
    rows = study.cell("orderings", enumerated, layer=study["layer"])
    return {"rows": rows, "listed": [{"count": study.cell("algorithm 2", listed, layer=study["layer"])}]}


def reuse_map(data: Data) -> Figure:
    """The orderings as rows, the reuse of each operand as coloured cells."""
    rows = data["rows"]
    operands = [name.removeprefix("_") for name in rows[0] if name.startswith("_")]
    figure, axes = canvas(1, 0.9 + 0.27 * len(rows))
    most = max(row[f"_{operand}"] for row in rows for operand in operands)
    for y, row in enumerate(rows):
        for x, operand in enumerate(operands):
            share = row[f"_{operand}"] / most
            colour = (
                "#F4F4F4" if row[f"_{operand}"] == 1 else LOADS[min(len(LOADS) - 1, int(share * len(LOADS)))]
            )
            axes[0].add_patch(_cell(x, y, colour))
            text = row[f"reuse of {operand}"]
            text = text if text == "-" else f"{text}: {row[f'_{operand}']:,} times"
            axes[0].text(x, y, text, ha="center", va="center", fontsize=8)
    axes[0].set_xlim(-0.5, len(operands) - 0.5)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    axes[0].set_xticks(range(len(operands)), [f"reuse of {operand}" for operand in operands])
    labels = [f"{row['schedule, innermost last']}   ({row['orderings alike']:,} alike)" for row in rows]
    axes[0].set_yticks(range(len(rows)), labels, family="monospace")
    axes[0].grid(visible=False)
    axes[0].tick_params(length=0)
    return figure


def _cell(x: int, y: int, colour: str) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.49, y - 0.46), 0.98, 0.92, facecolor=colour, edgecolor="none")


def judge(data: Data) -> Verdict:
    """5 of 24; reuse of W by n is 2, of O by both of c and fy is 12."""
    rows, total = data["rows"], sum(row["orderings alike"] for row in data["rows"])
    both = [row["_O"] for row in rows if row["reuse of O"] == "C x R"]
    weights = [row["_W"] for row in rows if row["reuse of W"] != "-"]
    return Verdict(
        compared=(
            Number("orderings of four loops", 24, total, "{:.0f}"),
            Number("of unique reuse", 5, len(rows), "{:.0f}"),
            Number("listed by algorithm 2", 5, data["listed"][0]["count"], "{:.0f}"),
            Number("iterations that W is reused for under n", 2, max(weights), "{:.0f}"),
            Number("iterations that O is reused for under c and fy", 12, max(both), "{:.0f}"),
        ),
        differs="Nothing differs.",
        needed="The trip counts of the example stand in the drawing; those used here have its products "
        "192, 2 and 12.",
        best="The count is complete: all 24 orderings are enumerated without the rule that prunes them.",
    )


FIGURE = PaperFigure(
    title="Orderings of a nest of four loops with unique reuse",
    claim="Of 4! = 24 orderings 5 have unique reuse of the operands.",
    sizes=every_size(layer="conv:N=2,C=4,K=8,P=1,Q=1,R=3,S=1"),
    measure=tables,
    judge=judge,
    draw=reuse_map,
)
