"""What was found besides one mapping, as records of a layer."""

from __future__ import annotations

from typing import Any

from tilewright.report.records.mapping.build import layer_record, solution_records, space_record, then_record
from tilewright.report.records.mapping.document import BestRecord, FrontRecord, LayerRecord, OptimaRecord
from tilewright.solvers.mapping.answers.adoption import AnswerSets
from tilewright.solvers.mapping.networks.network_problem import NetworkProblem
from tilewright.solvers.mapping.networks.network_search import LayerAnswer


def answer_record(network: NetworkProblem, answer: LayerAnswer) -> LayerRecord:
    """The record of what was found for one layer of a network."""
    space = None if answer.space is None else space_record(answer.space)
    return layer_record(
        answer.layer,
        network.engine,
        network.objective,
        network.constraints,
        answer.result,
        network.factors if space is None else space.factors,
        space,
        **set_records(answer.sets),
    )


def set_records(sets: AnswerSets) -> dict[str, Any]:
    """Records by the field of the layer; ``None`` for what was not asked for."""
    front, best, optima, then = sets.front, sets.best, sets.optima, sets.then
    return {
        "front": None
        if front is None
        else FrontRecord(
            complete=front.complete, wall_s=front.seconds, points=solution_records(front.solutions)
        ),
        "best": None
        if best is None
        else BestRecord(
            complete=best.complete, wall_s=best.seconds, mappings=solution_records(best.solutions)
        ),
        "optima": None
        if optima is None
        else OptimaRecord(
            complete=optima.complete,
            count=len(optima.solutions),
            wall_s=optima.seconds,
            mappings=solution_records(optima.solutions),
        ),
        "then": None if then is None else then_record(then.objective, then.result),
    }
