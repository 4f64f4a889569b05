"""Whether a document of a plan tells the truth: all claims are computed anew from it alone."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.report.checks.mapping.document import claim_faults, metric_faults
from tilewright.report.checks.trace import trace_faults
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.tiled.document import PlanDocument, inputs_hash, plan_metrics
from tilewright.solvers.scheduling.tiled.bounds import size_bounds
from tilewright.solvers.scheduling.tiled.exact.method import Exact
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import bound_key
from tilewright.workloads.errors import InputError


def plan_faults(document: PlanDocument, where: str) -> list[str]:
    """What is wrong, each in one line; empty where every claim holds.

    The plan is evaluated anew, and the bound over all sizes of atoms is computed anew.
    """
    objective = tiled_objective(document.objective)
    faults = [*claim_faults(document, objective, solved=document.plan is not None, noun="plan")]
    faults += trace_faults(document, document.trace, objective, document.wall_s)
    faults += _settings_faults(document)
    if document.input_hash != inputs_hash(document.problem, document.objective):
        faults.append("input_hash: network, machine, batch, rules or objective are not those solved")
    try:
        problem = document.problem.build(document.objective, f"{where}: problem")
        faults += _problem_faults(document, problem)
        faults += (
            _space_faults(document, problem, where) if document.space else _bound_faults(document, problem)
        )
        faults += _plan_faults(document, problem, where)
    except InputError as error:
        faults.append(str(error))
    except IllegalPlanError as fault:
        faults.append(f"illegal plan: {fault}")
    return faults


def _plan_faults(document: PlanDocument, problem: TiledProblem, where: str) -> Iterator[str]:
    if document.plan is None:
        if document.metrics is not None:
            yield "metrics: expected none without a plan"
        return
    answer = document.plan.build(problem, f"{where}: plan")
    found = problem.evaluate(answer.dag, answer.plan)
    value = TiledGoal(problem).key(found.energy.total, found.cycles)
    if document.value_key != value:
        yield f"value_exact: {document.value_exact}, the evaluator finds {value}"
    if document.value != number(value):
        yield f"value: {document.value}, the evaluator finds {number(value)}"
    for i, (layer, count) in enumerate(zip(document.plan.layers, np.diff(answer.dag.base), strict=True)):
        if layer.atoms != count:
            yield f"plan.layers[{i}].atoms: {layer.atoms}, its borders make {count}"
    if document.metrics is None:
        yield "metrics: missing"
    else:
        yield from metric_faults(document.metrics, plan_metrics(problem, answer, found))


def _bound_faults(document: PlanDocument, problem: TiledProblem) -> Iterator[str]:
    """Methods that do not prove claim the bound over all sizes, and nothing above it."""
    bound = document.bound_key
    if bound is not None:
        fresh: Fraction = bound_key(TiledGoal(problem), size_bounds(problem))
        if bound > fresh:
            yield f"bound_exact: {document.bound_exact}, over all sizes of atoms only {fresh} is known"


def _space_faults(document: PlanDocument, problem: TiledProblem, where: str) -> Iterator[str]:
    """An exact method's claim is about the space that it names, and its plan lies there."""
    method = METHODS.make(document.settings.method)
    if not isinstance(method, Exact):
        yield f"space: {method.name} claims bounds over all sizes of atoms only"
    elif document.plan is not None:
        answer = document.plan.build(problem, f"{where}: plan")
        spaces = (RoundSpace(problem, answer.dag, n) for n in range(method.idle, answer.plan.steps + 1))
        space = next((one for one in spaces if one.space == document.space), None)
        outside = None if space is None else space.outside(answer)
        if space is None:
            yield f"space: {document.space!r} is none of the plan's atoms"
        elif outside is not None:
            yield f"plan: lies outside the space: {outside}"


def _problem_faults(document: PlanDocument, problem: TiledProblem) -> Iterator[str]:
    told = (document.workload, document.system, document.layers)
    asked = (problem.network.name, problem.machine.name, len(problem.units))
    for field, one, other in zip(("workload", "system", "layers"), told, asked, strict=True):
        if one != other:
            yield f"{field}: {one}, the problem has {other}"


def _settings_faults(document: PlanDocument) -> Iterator[str]:
    settings = document.settings
    try:
        METHODS.make(settings.method)
    except InputError as error:
        yield f"settings.method: {error.message}"
    if not 0 <= settings.gap <= 1:
        yield f"settings.gap: {settings.gap}, expected from 0 to 1"
    if settings.threads < 1:
        yield f"settings.threads: {settings.threads}, expected at least 1"
    if settings.time_limit_s is not None and settings.time_limit_s <= 0:
        yield f"settings.time_limit_s: {settings.time_limit_s}, expected more than 0"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"
