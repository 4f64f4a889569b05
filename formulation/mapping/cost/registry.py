"""The cost models by name."""

from __future__ import annotations

from tilewright.formulation.mapping.cost.base import CostModel
from tilewright.formulation.mapping.cost.dmazerunner import DMazeRunner
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy

_MODELS: dict[str, CostModel] = {model.name: model for model in (Hierarchy(), DMazeRunner())}


def cost_model(name: str) -> CostModel:
    """The cost model of that name; raises ``KeyError``."""
    return _MODELS[name]


def cost_model_names() -> list[str]:
    """All names."""
    return [*_MODELS]
