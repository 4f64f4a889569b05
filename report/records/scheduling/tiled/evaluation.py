"""What the evaluator says of a plan, whoever made it, as data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.report.records.claims import number
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.scheduling.tiled.document import PlanDocument, inputs_hash, plan_metrics
from tilewright.report.records.scheduling.tiled.files import EditedPlan
from tilewright.report.records.scheduling.tiled.plan import layer_records
from tilewright.report.records.scheduling.tiled.problem import TiledProblemRecord
from tilewright.report.records.scheduling.tiled.timeline import link_loads, timeline

EVALUATION = "tilewright.evaluation/1"


@dataclass(frozen=True, eq=False)
class JudgedPlan:
    """A plan and what the evaluator found.

    Parameters
    ----------
    objective : its name in documents
    answer : the whole plan; ``None`` where tasks stand so that routing finds none
    evaluation : ``None`` for an illegal plan
    violation : the dependency, buffer or link that it breaks; ``None`` for a legal one
    """

    problem: TiledProblem
    objective: str
    answer: AtomicPlan | None
    evaluation: Evaluation | None
    violation: str | None

    @property
    def key(self) -> Fraction | None:
        """The objective's key."""
        evaluation = self.evaluation
        if evaluation is None:
            return None
        return self.problem.objective.key(Fraction(evaluation.energy.total), evaluation.cycles)


def judged(edited: EditedPlan) -> JudgedPlan:
    """Complete a plan where it is open, and evaluate it."""
    problem = edited.problem
    answer = None if edited.is_open else edited.answer
    try:
        answer = edited.completed()
        evaluation = problem.evaluate(answer.dag, answer.plan)
    except IllegalPlanError as fault:
        return JudgedPlan(problem, edited.objective, answer, None, str(fault))
    return JudgedPlan(problem, edited.objective, answer, evaluation, None)


def judged_document(document: PlanDocument, where: str = "document") -> JudgedPlan | None:
    """The plan of a document, evaluated again; ``None`` where it has none.  Raises ``InputError``."""
    if document.plan is None:
        return None
    problem = document.problem.build(document.objective, f"{where}: problem")
    answer = document.plan.build(problem, f"{where}: plan")
    return judged(EditedPlan(problem, document.objective, document.plan, answer, is_open=False))


def evaluation_data(plan: JudgedPlan) -> dict[str, Any]:
    """What ``tilewright evaluate --format json`` prints: verdict, metrics, links, engines and layers."""
    problem, key = plan.problem, plan.key
    reported: dict[str, Any] = {
        "schema": EVALUATION,
        "command": "evaluate",
        "workload": problem.network.name,
        "system": problem.machine.name,
        "batch": problem.batch,
        "objective": plan.objective,
        "legal": plan.violation is None,
        "violations": [] if plan.violation is None else [plan.violation],
        "value": None if key is None else number(key),
        "value_exact": None if key is None else str(key),
        "metrics": None,
    }
    if plan.answer is not None and plan.evaluation is not None:
        evaluation = plan.evaluation
        metrics = plan_metrics(problem, plan.answer, evaluation)
        times = timeline(plan.answer, problem.machine, evaluation)
        reported |= {
            "metrics": metrics.model_dump(),
            "links": [
                {"link": load.name, "bytes": load.bytes, "busy": load.busy}
                for load in link_loads(problem.machine, evaluation)
            ],
            "engines": [
                {"engine": engine, "busy": float(busy), "peak_buffer_bytes": peak}
                for engine, (busy, peak) in enumerate(zip(times.busy, metrics.peak_buffer_bytes, strict=True))
            ],
            "layers": layer_rows(plan),
        }
    return reported | {
        "input_hash": inputs_hash(TiledProblemRecord.of(problem), plan.objective),
        "versions": versions(),
    }


def layer_rows(plan: JudgedPlan) -> list[dict[str, Any]]:
    """Per layer: its atoms, how it is cut, when it runs, on how many engines, and their cycles."""
    if plan.answer is None or plan.evaluation is None:
        return []
    cut = layer_records(plan.answer.dag)
    times = timeline(plan.answer, plan.problem.machine, plan.evaluation)
    low, high, engines, work = times.layer_spans(len(cut))
    return [
        {
            "layer": tiling.layer,
            "atoms": tiling.atoms,
            "cut": [
                *(
                    len(borders) - 1
                    for borders in (tiling.samples, tiling.channels, tiling.rows, tiling.columns)
                ),
                (len(tiling.inputs) - 1) * max(1, len(tiling.across) - 1),
            ],
            "start": float(low[i]),
            "end": float(high[i]),
            "engines": int(engines[i]),
            "engine_cycles": float(work[i]),
        }
        for i, tiling in enumerate(cut)
    ]
