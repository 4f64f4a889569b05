"""Cost models: each states energy, cycles and constraints of a nest as expressions, once for all readers."""

from tilewright.formulation.mapping.cost.base import CostModel, Limit, Statement, Traffic
from tilewright.formulation.mapping.cost.registry import cost_model

__all__ = ["CostModel", "Limit", "Statement", "Traffic", "cost_model"]
