"""What one mapping costs, whoever made it."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from tilewright.api.arguments import named_arguments
from tilewright.api.display import Displayed
from tilewright.api.mapping.layer import LayerOnMachine
from tilewright.api.mapping.mapping import LayerMapping
from tilewright.formulation.mapping.demands.constraints import applicable
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.build import metrics_record
from tilewright.report.records.mapping.evaluation import evaluation_data
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.stored_mappings import read_mappings
from tilewright.report.text.mapping.evaluation import evaluation_views

GivenMapping = LayerMapping | Mapping | Sequence[MappingABC[str, Any]] | str | os.PathLike[str]


class MappingEvaluation(Displayed):
    """What the evaluator says of a mapping: its cost, whether it is legal, and whether it is in the space.

    Parameters
    ----------
    name : of the layer
    problem : with the machine, the objective and the demands
    mapping, evaluation : what was judged, and the verdict
    """

    def __init__(self, name: str, problem: LayerProblem, mapping: Mapping, evaluation: Evaluation) -> None:
        self.name = name
        self.problem = problem
        self.evaluation = evaluation
        self.mapping = LayerMapping(
            name, mapping, problem.operator, problem.engine, float(evaluation.energy), evaluation.cycles
        )

    @property
    def legal(self) -> bool:
        """Whether it breaks neither a rule of the machine nor a demand."""
        return not self.evaluation.violations

    @property
    def violations(self) -> tuple[str, ...]:
        """What it breaks, each in one line."""
        return tuple(self.evaluation.violations)

    @property
    def outside(self) -> str | None:
        """Why it lies outside the space that solvers search; ``None`` for one that lies in it."""
        return self.problem.outside(self.mapping.nodes)

    @property
    def key(self) -> Fraction:
        """The exact figure that solvers compare."""
        return self.problem.key_of(self.evaluation)

    @property
    def value(self) -> float | int:
        """The objective's value."""
        return self.problem.objective.value(self.key)

    @property
    def energy_pj(self) -> float:
        """Energy in pJ."""
        return float(self.evaluation.energy)

    @property
    def cycles(self) -> int:
        """Latency in cycles."""
        return self.evaluation.cycles

    @property
    def utilization(self) -> float:
        """Iterations per cycle over the number of PEs."""
        return self.evaluation.utilization

    def rows(self) -> list[dict[str, Any]]:
        """One row per memory level and tensor: accesses in elements."""
        record = metrics_record(self.evaluation, self.problem.engine)
        return [row.model_dump() for row in record.accesses]

    def to_dict(self) -> dict[str, Any]:
        """As ``tilewright evaluate --format json`` states it of one mapping."""
        return evaluation_data(self.name, self.problem, self.mapping.nodes, self.evaluation)

    def views(self) -> Sequence[RenderableType]:
        """Figures, loop nest, traffic and verdict."""
        return evaluation_views(self.name, self.problem, self.mapping.nodes, self.evaluation)

    def __repr__(self) -> str:
        verdict = "legal" if self.legal else f"illegal: {self.violations[0]}"
        return f"MappingEvaluation({self.name!r}, {self.problem.objective} {self.value}, {verdict})"


def evaluate(
    mapping: GivenMapping, question: LayerOnMachine | None = None, *, objective: str = "edp"
) -> MappingEvaluation:
    """Evaluate a mapping, whoever made it.

    Parameters
    ----------
    mapping : of a result, a list of nodes as in a mapping file, or the path of such a file
    question : the layer on its machine; without one, those that the mapping or its file names
    objective : of the value that is shown, where neither the question nor the file has one

    Raises
    ------
    InputError : where the mapping does not fit the layer and the machine, or they are not known
    """
    stored, where = _stored(mapping)
    if question is not None:
        evaluation = question.problem.evaluate(stored.mapping, where)
        return MappingEvaluation(question.layer.name, question.problem, stored.mapping, evaluation)
    if stored.operator is None or stored.engine is None:
        missing = "layer" if stored.operator is None else "arch"
        raise InputError(where, missing, "missing, expected one there or a question with it")
    with named_arguments():
        problem = layer_problem(
            stored.operator,
            stored.engine,
            parse_objective(stored.objective or objective),
            stored.cost_model,
            applicable(stored.constraints, stored.operator, stored.engine),
            stored.factors,
            stored.storage,
            stored.tiles,
        )
    evaluation = problem.evaluate(stored.mapping, where)
    return MappingEvaluation(stored.name, problem, stored.mapping, evaluation)


def _stored(mapping: GivenMapping) -> tuple[StoredMapping, str]:
    if isinstance(mapping, LayerMapping):
        return StoredMapping(mapping.name, mapping.nodes, mapping.operator, mapping.engine), mapping.name
    if isinstance(mapping, Mapping):
        return StoredMapping("mapping", mapping), "mapping"
    if isinstance(mapping, str | os.PathLike):
        mappings = read_mappings(Path(mapping))
        if len(mappings) != 1:
            raise InputError(str(mapping), None, f"has {len(mappings)} mappings, expected one")
        return mappings[0], str(mapping)
    rows = [dict(row) for row in mapping]
    return StoredMapping("mapping", Mapping.from_data(rows)), "mapping"
