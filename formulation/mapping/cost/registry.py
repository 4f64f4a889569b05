"""The cost models by name.  A new one is a module and a row here."""

from __future__ import annotations

from tilewright.formulation.mapping.cost.base import CostModel
from tilewright.formulation.registry import Entry, Registry

MODELS: Registry[CostModel] = Registry(
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
    group="tilewright.cost_models",
)


def cost_model(name: str) -> CostModel:
    """The cost model of that name; raises ``InputError`` for an unknown one."""
    return MODELS.make(name)
