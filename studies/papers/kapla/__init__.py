"""KAPLA: what stands at the head of its section, and its figures without a measurement."""

from __future__ import annotations

from typing import Final

from studies.papers.figure import Paper, Plain

PAPER: Final = Paper(
    title="KAPLA",
    source="Li and Gao, *KAPLA: Pragmatic Representation and Fast Solving of Scalable NN Accelerator "
    "Dataflow*, 2023.",
    about="Chains of segments by the closed form on 8 x 8 nodes of 16 x 16 PEs with 512 kB, four samples "
    "([where this differs](kapla-segments.md#beside-the-papers-tables)).  The letters are [methods of "
    "`schedule`](kapla-segments.md#the-approaches-that-kapla-compares-itself-with): B `nn-dataflow`, S "
    "`directives`, R `random` (the median of five seeds), M `autotvm`, K `kapla`; T is Tangram.  Losses are "
    "percent above the proven best chain (`chains`).",
    plain={
        "fig1": Plain("drawing", "A machine of several nodes", "[tiled machines](tiled.md)"),
        "fig2": Plain("drawing", "A taxonomy of dataflows", "[segments](kapla-segments.md)"),
        "fig3": Plain(
            "drawing",
            "Directives of two layers",
            "[directives](kapla-segments.md#directives-of-whole-pipelines)",
        ),
        "fig4": Plain(
            "drawing", "A specification of the hardware", "[tiled machine files](reference/tiled-machine.md)"
        ),
        "fig5": Plain("drawing", "Workflow of the solver", "[segments](kapla-segments.md)"),
        "fig6": Plain("drawing", "Stacking and caching", "`heuristics/mapping/kapla.py`"),
        "table1": Plain("notation", "Dimensions of tensors", "[layers](reference/layers.md)"),
        "table2": Plain("setting", "Taxonomy of previous proposals", "nothing is measured there"),
        "table3": Plain("setting", "Techniques of the solver", "[heuristics](heuristics.md#kapla-kapla)"),
    },
)
