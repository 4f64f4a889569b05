"""What an exploration knows: answers of cells, values and bounds of designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.demands.constraints import applicable, evaluate_under, parse_constraints
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.foundation.arrays import Floats
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.explore.bounds import COMPULSORY, LayerBounds
from tilewright.solvers.mapping.explore.cells import ABOVE, Asked, Cell, Nodes, Reported
from tilewright.solvers.mapping.explore.features import sharing_levels
from tilewright.workloads.selection import SelectedLayer

_INCOMPARABLE = ("energy", "edp", "utilization")
"""Demands that a machine with larger capacities, or other prices, may fail where a smaller one meets them."""


class How(StrEnum):
    """How a layer's answer on a design came about."""

    SEARCHED = "searched"  #: a search proved it
    KEPT = "kept"  #: the store had it
    SHARED = "shared"  #: another design asks the same question
    CARRIED = "carried"  #: the mapping of a design with larger capacities fits, and nothing is better there


@dataclass(frozen=True, slots=True)
class Known:
    """An answer of a layer on a design."""

    reported: Reported
    how: How


class State:
    """All that is known of some designs and layers.

    Parameters
    ----------
    engines : the designs' machines
    layers : what runs on them
    asked : the same of every layer
    limits : of the whole call, for the bounds that are known before anything is searched

    Attributes
    ----------
    bounds : per layer
    mappings : per layer, the mappings that searches found, by the design of each
    known : by layer and design, the answers so far
    answered, proven, valued : which of them there are, which are proofs and which have a mapping, shape
        (layers, designs)
    news : per design, how many answers have come
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        layers: Sequence[SelectedLayer],
        asked: Asked,
        limits: Limits | None = None,
    ) -> None:
        self.engines = sharing_levels(engines)
        self.layers = list(layers)
        self.asked = asked
        self.objective: Objective = parse_objective(asked.objective)
        comparing = not any(text.startswith(_INCOMPARABLE) for text in asked.constraints)
        self.bounds = [
            LayerBounds(
                layer.operator,
                self.engines,
                self.objective,
                asked.cost_model,
                asked.factors,
                comparing=comparing,
                limits=limits,
            )
            for layer in layers
        ]
        self.mappings: list[dict[int, Nodes]] = [{} for _ in layers]
        self.known: dict[tuple[int, int], Known] = {}
        self.answered = np.zeros((len(self.layers), len(self.engines)), dtype=bool)
        self.proven = np.zeros_like(self.answered)
        self.valued = np.zeros_like(self.answered)
        self.news = np.zeros(len(self.engines), dtype=np.int64)
        self._same: list[dict[object, list[int]]] = []
        for layer_bounds in self.bounds:
            groups: dict[object, list[int]] = {}
            for design, signature in enumerate(layer_bounds.signatures):
                groups.setdefault(signature, []).append(design)
            self._same.append(groups)

    def low(self) -> Floats:
        """Lower bounds of keys, shape (layers, designs)."""
        return np.stack([layer_bounds.low for layer_bounds in self.bounds])

    def cell(self, layer: int, design: int, seconds: float) -> Cell:
        """The cell of a layer on a design."""
        engine = self.bounds[layer].engine(design)
        return Cell.of(self.layers[layer].operator, engine, self.asked, seconds)

    def reopen(self) -> None:
        """What was answered without a proof may be asked again."""
        self.answered &= self.proven

    def alike(self, layer: int, design: int) -> list[int]:
        """Designs that ask the same question of a layer."""
        return self._same[layer][self.bounds[layer].signatures[design]]

    def record(self, layer: int, design: int, reported: Reported, how: How) -> None:
        """An answer has come: it is that of all designs alike, and its bound speaks of others.

        Parameters
        ----------
        layer, design : indices of the cell
        reported : its answer, with or without a proof
        how : whether it was searched, stored or carried over
        """
        if reported.mapping is not None:
            self.mappings[layer][design] = reported.mapping
        if reported.status != ABOVE:
            self._keep(layer, design, reported, how)
        if reported.status == "infeasible":
            self.bounds[layer].learn(design, None)
        elif reported.bound is not None:
            self.bounds[layer].learn(design, reported.bound)

    def carry(self, layer: int, design: int) -> bool:
        """Take over the mapping of a design with larger capacities, where it fits and no other can be better.

        That design's least key is a lower bound here; its mapping, if it is legal here and has that
        very key, is optimal.
        """
        bounds = self.bounds[layer]
        if bounds.why[design] == COMPULSORY or not bounds.exact[design]:
            return False
        anchor = bounds.anchors[bounds.why[design]]
        if anchor.key is None:
            self._keep(layer, design, Reported("infeasible"), How.CARRIED)
            return True
        answer = self.known.get((layer, anchor.design))
        if answer is None:
            return False
        reported = answer.reported
        if reported.status != "optimal" or reported.mapping is None:
            return False
        operator, engine = self.layers[layer].operator, self.engines[design]
        demands = parse_constraints(applicable(self.asked.constraints, operator, engine), operator, engine)
        mapping = Mapping.from_data(list(reported.mapping))
        evaluation = evaluate_under(operator, engine, cost_model(self.asked.cost_model), demands, mapping)
        key = self.objective.key(evaluation.energy, evaluation.cycles)
        if evaluation.violations or key != anchor.key:
            return False
        same = Reported("optimal", key, key, evaluation.energy, evaluation.cycles, reported.mapping)
        self._keep(layer, design, same, How.CARRIED)
        return True

    def _keep(self, layer: int, design: int, reported: Reported, how: How) -> None:
        alike = self.alike(layer, design)
        for other in alike:
            self.known[layer, other] = Known(reported, how if other == design else How.SHARED)
        self.answered[layer, alike] = True
        self.proven[layer, alike] = reported.proven
        self.valued[layer, alike] = reported.value is not None
        self.news[alike] += 1

    @property
    def shared(self) -> int:
        """How many cells have the answer of another design that asks the same question."""
        return sum(known.how is How.SHARED for known in self.known.values())

    def reported(self, design: int, counts: Sequence[int]) -> list[tuple[int, Reported]] | None:
        """How often each layer counts on a design, and its answer; ``None`` while a mapping is missing."""
        answers: list[tuple[int, Reported]] = []
        for layer, count in enumerate(counts):
            if count:
                known = self.known.get((layer, design))
                if known is None or known.reported.value is None:
                    return None
                answers.append((count, known.reported))
        return answers
