"""SET: what stands at the head of its section, and its figures without a measurement."""

from __future__ import annotations

from typing import Final

from studies.papers.figure import Paper, Plain

PAPER: Final = Paper(
    title="SET",
    source="Cai et al., *Inter-layer Scheduling Space Definition and Exploration for Tiled Accelerators*, "
    "ISCA 2023.",
    about="Resource allocation trees on `set-edge-4x4` and `set-cloud-12x12` by the closed form with the "
    "released program's "
    "tile and the paper's rules ([trees](set.md)); `annealing` is SET as published, `set` our search.",
    plain={
        "fig1": Plain("drawing", "From a network to an accelerator, and two spaces", "[trees](set.md)"),
        "fig2": Plain("drawing", "A tree and how it is analysed", "[trees as text](reference/set-tree.md)"),
        "fig3": Plain("drawing", "LP and LS as trees", "methods `set-lp`, `set-ls` of `tilewright schedule`"),
        "fig4": Plain("drawing", "Trade-offs between cuts", "[trees](set.md)"),
        "fig6": Plain("drawing", "Overview of the framework", "[trees](set.md)"),
        "fig7": Plain(
            "algorithm", "Operators of annealing", "`heuristics/scheduling/tiled/set/operators.py`"
        ),
    },
)
