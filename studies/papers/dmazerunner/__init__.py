"""dMazeRunner: what stands at the head of its section, and its figures without a measurement."""

from __future__ import annotations

from typing import Final

from studies.papers.figure import Paper, Plain

PAPER: Final = Paper(
    title="dMazeRunner",
    source="Dave et al., *dMazeRunner: Executing Perfectly Nested Loops on Dataflow Accelerators*, ACM "
    "TECS 18(5s), "
    "2019.",
    about="Six layers of ResNet, batch 4, on `dmazerunner-256` (256 PEs, 512 B of registers each, 128 kB "
    "of scratchpad) "
    "with the cost model as the released tool computes it ([cost models](cost-models.md)).",
    plain={
        "fig1": Plain("drawing", "A dataflow accelerator", "the presets, `tilewright show dmazerunner-256`"),
        "fig2": Plain(
            "drawing", "A small convolution and one of its mappings", "`tilewright show`, any mapping"
        ),
        "fig3": Plain("drawing", "The framework", "[design](design.md)"),
        "fig4": Plain("drawing", "A nest tiled at four levels", "[mapping files](reference/mapping.md)"),
        "fig5": Plain(
            "drawing", "Three loops spread over PE groups", "`tilewright show --plot`, any mapping"
        ),
        "table1": Plain("setting", "Features of four tools", "nothing is measured there"),
        "table3": Plain("notation", "Symbols of the model", "[cost models](cost-models.md)"),
    },
)
