"""The cost models by name, with the type that their table in the layer of machines does not know."""

from __future__ import annotations

from tilewright.formulation.mapping.cost.base import CostModel
from tilewright.foundation.registry import Registry
from tilewright.hardware.mapping.cost_models import COST_MODELS

MODELS: Registry[CostModel] = COST_MODELS


def cost_model(name: str) -> CostModel:
    """The cost model of that name; raises ``InputError`` for an unknown one."""
    return MODELS.make(name)
