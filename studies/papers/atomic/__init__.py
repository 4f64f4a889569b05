"""Atomic Dataflow: what stands at the head of its section, and its figures without a measurement."""

from __future__ import annotations

from typing import Final

from studies.papers.figure import Paper, Plain

PAPER: Final = Paper(
    title="Atomic Dataflow",
    source="Zheng et al., *Atomic Dataflow based Graph-Level Workload Orchestration for Scalable DNN "
    "Accelerators*, HPCA "
    "2022.",
    about="Machine `atomic-8x8` (64 engines of 16 x 16 PEs and 128 KB), KC dataflow, links of 16 B/cycle, "
    "which the paper "
    "does not print; `printed` is its pipeline as printed, `atomic` the repaired one "
    "([methods](tiled-methods.md)).  Searches end by seconds of the processor; two runs of `atomic` "
    "differ by a few percent.",
    plain={
        "fig1": Plain(
            "drawing", "An engine, a convolution, a machine of several engines", "[tiled machines](tiled.md)"
        ),
        "fig3": Plain(
            "drawing", "Four ways of orchestrating six layers", "`tilewright schedule --gantt`, any method"
        ),
        "fig4": Plain("drawing", "Overview of the framework", "[methods](tiled-methods.md)"),
        "fig6": Plain("drawing", "Sources of parallelism in the DAG of atoms", "[methods](tiled-methods.md)"),
    },
)
