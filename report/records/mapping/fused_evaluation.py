"""The evaluation of a fused mapping as plain data."""

from __future__ import annotations

from typing import Any

from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation
from tilewright.hardware.mapping.engine import Engine


def fused_metrics(evaluation: FusedEvaluation, engine: Engine) -> dict[str, Any]:
    """Energy, cycles and what moves, of all turns and shared stores."""
    outermost = engine.levels[0].name
    return {
        "energy_pj": float(evaluation.energy),
        "cycles": evaluation.cycles,
        "macs": evaluation.macs,
        "outermost_elements": evaluation.elements_through(outermost),
        "energy_by_component_pj": {name: float(part) for name, part in evaluation.components.items()},
        "layers": [
            {
                "name": cost.layer,
                "turns": cost.turns,
                "shapes": cost.shapes,
                "energy_pj": float(cost.energy),
                "cycles": cost.cycles,
                "accesses": [
                    {"level": level, "tensor": tensor, "reads": reads, "fills": fills, "updates": updates}
                    for (level, tensor), (reads, fills, updates) in cost.accesses.items()
                ],
            }
            for cost in evaluation.layers
        ],
        "shared": [
            {
                "tensor": move.tensor,
                "from": move.outer,
                "to": move.inner,
                "elements": move.elements,
                "again": move.again,
                "cycles": move.cycles,
            }
            | ({"purpose": move.purpose} if move.purpose else {})
            for move in evaluation.movements
        ],
        "intermediates": [
            {
                "layer": layer,
                "home": outermost if passing.home is None else passing.home.store.level,
                "elements": passing.elements,
                "computed": passing.made,
            }
            for layer, passing in evaluation.turns.passings.items()
        ],
        "violations": list(evaluation.violations),
    }
