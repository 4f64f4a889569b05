"""The cost models by name: a machine's file names the one that counts it.

The table stands on the floor of machines, so that an unknown name is an error of the file.  It knows where
the cost models are, and nothing of their formulas; they are imported when a problem is stated.
"""

from __future__ import annotations

from typing import Any

from tilewright.foundation.registry import Entry, Registry

COST_MODELS: Registry[Any] = Registry(
    "--cost-model",
    {
        "hierarchy": Entry(
            "tilewright.formulation.mapping.cost.hierarchy",
            "Hierarchy",
            "reads, fills and updates of every tensor at every memory level, any perfect nest",
        ),
        "dmazerunner": Entry(
            "tilewright.formulation.mapping.cost.dmazerunner",
            "DMazeRunner",
            "passes, DMA invocations and operand networks, convolutions and matrix products",
            "dMazeRunner (Dave et al., ACM TECS 18(5s), 2019), section 4.3",
        ),
    },
    group="cost_models",
)
