"""Whether a document of a plan is correct: all claims are computed again from it alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.errors import InputError
from tilewright.report.checks.mapping.document import claim_faults, metric_faults
from tilewright.report.checks.scheduling.settings import proves, settings_faults
from tilewright.report.checks.trace import trace_faults
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.tiled.document import (
    PlanDocument,
    PlanMetricsRecord,
    inputs_hash,
    plan_metrics,
)
from tilewright.report.records.scheduling.tiled.plan import PlanRecord
from tilewright.solvers.scheduling.tiled.ancestors import EFFORT
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.second_opinion import named_space, plan_bound


@dataclass(frozen=True, eq=False)
class PlanCheck:
    """A document with the problem that it answers.

    Parameters
    ----------
    problem : ``None`` where the document does not state one that can be built
    answer, evaluation : the plan and what it costs, where it is legal
    faults : what is wrong, each in one line; empty where every claim holds
    """

    document: PlanDocument
    problem: TiledProblem | None
    answer: AtomicPlan | None
    evaluation: Evaluation | None
    faults: tuple[str, ...]


def check_plan(document: PlanDocument, where: str) -> PlanCheck:
    """Evaluate the plan again, compute the bound over all sizes again, and compare all that is claimed."""
    objective = tiled_objective(document.objective)
    exact = proves(document.settings.method, METHODS)
    faults = [*claim_faults(document, objective, solved=document.plan is not None, noun="plan", exact=exact)]
    faults += trace_faults(document, document.trace, objective, document.wall_s)
    faults += settings_faults(document.settings, METHODS, document.versions)
    if document.status == "infeasible" and not exact:
        faults.append(f"status: infeasible by {document.settings.method}, which is a heuristic")
    if document.input_hash != inputs_hash(document.problem, document.objective):
        faults.append("input_hash: network, machine, batch, rules or objective are not those solved")
    problem = answer = evaluation = None
    try:
        problem = document.problem.build(document.objective, f"{where}: problem")
        faults += _problem_faults(document, problem)
        if document.plan is None:
            faults += [] if document.metrics is None else ["metrics: expected none without a plan"]
        else:
            answer = document.plan.build(problem, f"{where}: plan")
            evaluation = problem.evaluate(answer.dag, answer.plan)
            faults += _plan_faults(document, document.plan, problem, answer, evaluation)
        faults += _space_faults(document, problem, answer)
        faults += _bound_faults(document, problem)
    except InputError as error:
        faults.append(str(error))
    except IllegalPlanError as fault:
        faults.append(f"illegal plan: {fault}")
    return PlanCheck(document, problem, answer, evaluation, tuple(faults))


def _plan_faults(
    document: PlanDocument,
    plan: PlanRecord,
    problem: TiledProblem,
    answer: AtomicPlan,
    evaluation: Evaluation,
) -> Iterator[str]:
    """Value, metrics and the way the plan is written down, against what the evaluator finds."""
    value = problem.objective.key(Fraction(evaluation.energy.total), evaluation.cycles)
    if document.value != number(value):
        yield f"value: {document.value}, the evaluator finds {number(value)}"
    yield from evaluated_faults(
        document.value_key,
        document.metrics,
        plan,
        problem,
        answer,
        evaluation,
        effort=EFFORT if document.complete else 0,
    )


def evaluated_faults(
    key: Fraction | None,
    metrics: PlanMetricsRecord | None,
    plan: PlanRecord,
    problem: TiledProblem,
    answer: AtomicPlan,
    evaluation: Evaluation,
    *,
    effort: int = EFFORT,
) -> Iterator[str]:
    """The figures reported of a plan, against those of the evaluator.

    Parameters
    ----------
    key, metrics, plan : as they are reported
    answer : the same plan
    effort : at which the bound of its atoms was computed
    """
    value = problem.objective.key(Fraction(evaluation.energy.total), evaluation.cycles)
    if key != value:
        yield f"value_exact: {key}, the evaluator finds {value}"
    fresh = PlanRecord.of(answer)
    for i, (layer, other) in enumerate(zip(plan.layers, fresh.layers, strict=True)):
        if layer.atoms != other.atoms:
            yield f"plan.layers[{i}].atoms: {layer.atoms}, its borders make {other.atoms}"
    if metrics is None:
        yield "metrics: missing"
    else:
        yield from metric_faults(metrics, plan_metrics(problem, answer, evaluation, effort=effort))


def _bound_faults(document: PlanDocument, problem: TiledProblem) -> Iterator[str]:
    """A bound over all plans is one that can be computed; no method proves more without naming a space."""
    bound = document.bound_key
    if bound is None or document.space:
        return
    known = plan_bound(problem)
    if bound > known:  # an earlier version's bound may be weaker
        yield f"bound_exact: {document.bound_exact}, over all sizes of atoms only {known} is known"


def _space_faults(document: PlanDocument, problem: TiledProblem, answer: AtomicPlan | None) -> Iterator[str]:
    """A claim about fewer plans is an exact method's, and about plans like the one that is there."""
    if not document.space:
        return
    if not proves(document.settings.method, METHODS):
        yield f"space: {document.settings.method} claims bounds over all sizes of atoms only"
    elif answer is not None:
        yield from space_faults(problem, answer, document.space)


def space_faults(problem: TiledProblem, answer: AtomicPlan, name: str) -> Iterator[str]:
    """The space that a claim names is one that the plan's atoms make, and the plan lies in it."""
    space = named_space(problem, answer, name)
    outside = None if space is None else space.outside(answer)
    if space is None:
        yield "space: none that the plan's atoms make"
    elif outside is not None:
        yield f"plan: lies outside the space: {outside}"


def _problem_faults(document: PlanDocument, problem: TiledProblem) -> Iterator[str]:
    reported = (document.workload, document.system, document.layers)
    asked = (problem.network.name, problem.machine.name, len(problem.units))
    for field, stated, other in zip(("workload", "system", "layers"), reported, asked, strict=True):
        if stated != other:
            yield f"{field}: {stated}, the problem has {other}"
