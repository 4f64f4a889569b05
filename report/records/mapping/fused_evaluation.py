"""The evaluation of a fused mapping as plain data, and the groups of a document evaluated anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, tree_from_data
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import bits_of
from tilewright.report.records.mapping.fused_document import FusedDocument, FusedGroupRecord
from tilewright.report.records.mapping.fused_file import recorded_group


@dataclass(frozen=True)
class EvaluatedGroup:
    """A group of a document, its tree read and evaluated anew.

    Parameters
    ----------
    group, engine, tree : as stated
    evaluation, unfused : of the tree, and of the layers' own mappings; ``None`` where these are not stated
    """

    group: FusedGroup
    engine: Engine
    tree: Branch
    evaluation: FusedEvaluation
    unfused: FusedEvaluation | None

    @property
    def name(self) -> str:
        return " + ".join(self.group.names)

    @property
    def outermost_bits(self) -> tuple[dict[str, int], dict[str, int] | None]:
        """Through the outermost level, by tensor: fused, and unfused as far as that is known."""
        before = None
        if self.unfused is not None:
            before = outermost_bits(self.group, self.engine, self.unfused)
        return outermost_bits(self.group, self.engine, self.evaluation), before


def evaluated_groups(document: FusedDocument) -> Iterator[tuple[FusedGroupRecord, EvaluatedGroup]]:
    """The groups of more than one layer that have a tree."""
    engine, model = document.arch.engine.build(), cost_model(document.cost_model)
    for record in document.groups:
        if len(record.layers) > 1 and record.tree is not None:
            group = recorded_group(document, record, "group")
            tree = tree_from_data(record.tree)
            evaluation = evaluate_fused(group, engine, model, tree)
            alone = record.unfused.tree and tree_from_data(record.unfused.tree)
            unfused = evaluate_fused(group, engine, model, alone) if alone else None
            yield record, EvaluatedGroup(group, engine, tree, evaluation, unfused)


def outermost_bits(group: FusedGroup, engine: Engine, evaluation: FusedEvaluation) -> dict[str, int]:
    """Bits that the outermost level hands out or takes in, by tensor, ``qk.A``.

    An intermediate is named after the layer that makes it, whoever reads it.

    Parameters
    ----------
    group, engine : the layers and the machine
    evaluation : of one of their mappings
    """
    outermost = engine.levels[0].name
    bits: dict[str, int] = {}

    def add(layer: str, tensor: str, elements: int) -> None:
        reading = group.reading(layer, tensor)
        name = f"{layer}.{tensor}"
        if reading is not None:
            name = f"{reading.producer}.{group.operator(reading.producer).output.name}"
        width = bits_of(engine, group.operator(layer), outermost, tensor)
        bits[name] = bits.get(name, 0) + elements * width

    for cost in evaluation.layers:
        for (level, tensor), counts in cost.accesses.items():
            if level == outermost:
                add(cost.layer, tensor, sum(counts))
    for move in evaluation.movements:
        if move.outer == outermost:
            layer, _, tensor = move.tensor.rpartition(".")
            add(layer, tensor, move.elements + move.again)
    return bits


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
