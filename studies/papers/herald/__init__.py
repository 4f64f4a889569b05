"""Herald: what stands at the head of its section, and its figures without a measurement."""

from __future__ import annotations

from typing import Final

from studies.papers.figure import Paper, Plain

PAPER: Final = Paper(
    title="Herald",
    source="Kwon et al., *Heterogeneous Dataflow Accelerators for Multi-DNN Workloads*, HPCA 2021.",
    about="Workloads of table II on machines of tables III and IV; costs of layers are the best mapping of "
    "each style on "
    "the hierarchy model, not MAESTRO's ([what differs](herald.md#where-this-differs-from-the-paper)).",
    plain={
        "fig1": Plain("drawing", "Shapes of layers along two kinds of networks", "table I has the ratios"),
        "fig3": Plain(
            "drawing", "Fixed, reconfigurable and heterogeneous accelerators", "[systems](herald.md#systems)"
        ),
        "fig4": Plain("drawing", "Loop nests of two dataflows", "[dataflows](herald.md#dataflows)"),
        "fig7": Plain(
            "algorithm", "Overview of the scheduler", "`heuristics/scheduling/herald/scheduler.py`"
        ),
        "fig8": Plain("algorithm", "Assignment and ordering of layers", "the same file"),
        "fig9": Plain("algorithm", "Post-processing that removes idle time", "the same file, options `idle`"),
        "fig10": Plain("drawing", "Overview of Herald", "[Herald](herald.md)"),
        "table2": Plain(
            "setting", "Workloads", "`tilewright list workloads`; table VII has the numbers of layers"
        ),
        "table3": Plain("setting", "Styles of accelerators", "`tilewright list systems`"),
        "table4": Plain("setting", "Classes of accelerators", "[systems](herald.md#systems)"),
    },
)
