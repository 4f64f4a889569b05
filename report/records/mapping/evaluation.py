"""What the evaluator says of one mapping, as data."""

from __future__ import annotations

from typing import Any

from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.report.records.claims import shown_value
from tilewright.report.records.mapping.build import factors_of, metrics_record, space_record
from tilewright.report.records.mapping.operator import OperatorRecord


def evaluation_data(
    name: str, problem: LayerProblem, mapping: Mapping, evaluation: Evaluation
) -> dict[str, Any]:
    """One entry of the document that ``tilewright evaluate`` prints.

    Parameters
    ----------
    name : of the layer
    problem : whose objective and space the mapping is seen in
    mapping : legal or not, inside the space or not
    evaluation : the mapping's, with the user's demands
    """
    key, outside = problem.key_of(evaluation), problem.outside(mapping)
    return {
        "name": name,
        "operator": OperatorRecord.of(problem.operator).model_dump(),
        "bounds": problem.operator.bounds,
        "arch": problem.engine.name,
        "cost_model": problem.model.name,
        "objective": str(problem.objective),
        "constraints": list(problem.constraints.texts),
        "factors": factors_of(problem),
        "space": space_record(ClaimedSpace.of(problem)).model_dump(),
        "legal": not evaluation.violations,
        "violations": list(evaluation.violations),
        "inside": outside is None,
        "outside": outside,
        "value": shown_value(problem.objective, key),
        "value_exact": str(key),
        "metrics": metrics_record(evaluation, problem.engine).model_dump(),
        "mapping": {"nodes": mapping.to_data()},
        "input_hash": problem.content_hash,
    }
