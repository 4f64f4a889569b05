"""Whether the claims of a result document hold: each is recomputed from the document itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.demands.constraints import applicable
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import PERFECT, LayerProblem, layer_problem
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import OutOfSpaceSolution
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.checks.mapping.answer_sets import further_faults
from tilewright.report.checks.mapping.head import head_faults
from tilewright.report.checks.trace import trace_faults
from tilewright.report.records.claims import ClaimRecord, Number, shown_gap, shown_value
from tilewright.report.records.mapping.build import (
    factors_of,
    metrics_record,
    out_of_space_record,
    space_record,
    totals_record,
)
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument
from tilewright.report.records.mapping.operator import Record
from tilewright.report.text.mapping.spaces import record_text

_SOLVED = ("optimal", "feasible")
_UNSOLVED = ("infeasible", "unknown")
_ADDED = ("edp_bound", "sum_of_layer_edp", "without_mapping")
"""Totals that older documents do not have, and that are left out where there are none."""


@dataclass(frozen=True)
class LayerCheck:
    """One layer of a document with the problem that it answers.

    Parameters
    ----------
    problem : ``None`` where the document does not state one that can be built
    faults : what is wrong, each in one line; empty where every claim holds
    """

    layer: LayerRecord
    problem: LayerProblem | None
    faults: tuple[str, ...]


def check_document(document: ResultDocument, where: str) -> Iterator[LayerCheck]:
    """Check every layer in turn.

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    engine = document.arch.build(where)
    objective = parse_objective(document.objective)
    for index, layer in enumerate(document.layers):
        yield check_layer(document, layer, engine, objective, f"{where}: layers[{index}]")


def check_layer(
    document: ResultDocument, layer: LayerRecord, engine: Engine, objective: Objective, where: str
) -> LayerCheck:
    """Check one layer.

    Parameters
    ----------
    document : names the cost model, the machine and the settings
    layer : its record, whose operator and constraints state the problem
    engine, objective : the document's, built
    where : file and place, for errors
    """
    try:
        operator = layer.operator.build(where)
        demands = applicable(layer.constraints, operator, engine)
        kind = (None, None) if layer.space is None else (layer.space.asked_storage, layer.space.asked_tiles)
        problem = layer_problem(
            operator, engine, objective, document.cost_model, demands, layer.factors, *kind
        )
    except InputError as error:
        return LayerCheck(layer, None, (str(error),))
    faults = list(claim_faults(layer, objective, solved=layer.mapping is not None, noun="mapping"))
    if layer.bounds != operator.bounds:
        faults.append(f"bounds: {layer.bounds}, the operator has {operator.bounds}")
    if layer.count != len(layer.names) * layer.runs:
        runs = "" if layer.runs == 1 else f" that run {layer.runs} times"
        faults.append(f"count: {layer.count}, but {len(layer.names)} names{runs}")
    if document.phases is None and (layer.runs, layer.least_runs) != (1, None):
        faults.append(f"runs: {layer.runs}, but the document states no phases")
    if layer.factors != factors_of(problem) and _is_stated(layer):
        faults.append(f"factors: {layer.factors}, the problem's are {factors_of(problem)}")
    if document.settings.factors is None and layer.factors == PERFECT and not problem.model.perfect_only:
        faults.append("factors: perfect, but settings.factors is null, which means imperfect")
    if layer.input_hash != problem.content_hash and _is_stated(layer):
        faults.append("input_hash: operator, machine, objective, constraints or factors are not those solved")
    faults += _space_faults(layer, problem)
    if layer.mapping is not None:
        faults += _mapping_faults(layer, problem)
    faults += trace_faults(layer, layer.trace, objective, layer.wall_s)
    faults += further_faults(layer, problem)
    return LayerCheck(layer, problem, tuple(faults))


def _is_stated(layer: LayerRecord) -> bool:
    """Whether the layer's problem was stated before the limit struck, as whoever claims anything has."""
    claims = layer.mapping is not None or layer.bound is not None or layer.status in ("optimal", "infeasible")
    return claims or layer.input_hash is not None


def _space_faults(layer: LayerRecord, problem: LayerProblem) -> Iterator[str]:
    """The claim names the space that was searched; an out-of-space solution is legal and outside."""
    fresh = space_record(ClaimedSpace.of(problem))
    if layer.space is None:
        if _is_stated(layer):
            yield f"space: missing, expected {record_text(fresh)}"
    elif layer.space != fresh:
        yield f"space: {record_text(layer.space)}, the problem's is {record_text(fresh)}"
    if layer.beside is None:
        return
    try:
        mapping = Mapping.from_data(layer.beside.mapping.nodes, "beside")
        evaluation = problem.evaluate(mapping, "beside")
    except InputError as error:
        yield str(error)
        return
    yield from (f"beside: illegal mapping: {violation}" for violation in evaluation.violations)
    reason = problem.outside(mapping)
    if reason is None:
        yield "beside: the mapping lies inside the space"
        return
    reported = OutOfSpaceSolution(
        mapping, evaluation, problem.key_of(evaluation), reason, layer.beside.source
    )
    if layer.beside != out_of_space_record(problem.objective, reported):
        yield "beside: differs from the evaluator's result"


def _mapping_faults(layer: LayerRecord, problem: LayerProblem) -> Iterator[str]:
    assert layer.mapping is not None
    try:
        mapping = Mapping.from_data(layer.mapping.nodes, "mapping")
        evaluation = problem.evaluate(mapping)
    except InputError as error:
        yield str(error)
        return
    yield from (f"illegal mapping: {violation}" for violation in evaluation.violations)
    reason = problem.outside(mapping)
    if reason is not None:
        yield f"mapping: outside the space of the claim: {reason}"
    key = problem.key_of(evaluation)
    if layer.value_key != key:
        yield f"value_exact: {layer.value_exact}, the evaluator finds {key}"
    if layer.value != shown_value(problem.objective, key):
        yield f"value: {layer.value}, the evaluator finds {shown_value(problem.objective, key)}"
    yield from _metric_faults(layer, evaluation, problem.engine)


def _metric_faults(layer: LayerRecord, evaluation: Evaluation, engine: Engine) -> Iterator[str]:
    if layer.metrics is None:
        yield "metrics: missing"
        return
    yield from metric_faults(layer.metrics, metrics_record(evaluation, engine))


class Claims(Protocol):
    """The fields of a record that claims a value and a bound."""

    @property
    def status(self) -> str: ...
    @property
    def value(self) -> Number | None: ...
    @property
    def value_exact(self) -> str | None: ...
    @property
    def value_key(self) -> Fraction | None: ...
    @property
    def bound(self) -> Number | None: ...
    @property
    def bound_exact(self) -> str | None: ...
    @property
    def bound_key(self) -> Fraction | None: ...


def claim_faults(
    claims: ClaimRecord, objective: Objective, *, solved: bool, noun: str, exact: bool = True
) -> Iterator[str]:
    """Status, value, bound and gap must fit together.

    Parameters
    ----------
    solved : whether there is a solution
    noun : what a solution is called
    exact : whether the method proves; a heuristic's answer stays ``feasible`` where it meets the bound
    """
    yield from status_faults(claims, solved=solved, noun=noun, exact=exact)
    value, bound = claims.value_key, claims.bound_key
    if claims.bound != shown_value(objective, bound):
        yield f"bound: {claims.bound}, but bound_exact is {bound}"
    gap = shown_gap(objective, value, bound)
    if claims.gap != gap:
        yield f"gap: {claims.gap}, value and bound give {gap}"


def status_faults(claims: Claims, *, solved: bool, noun: str, exact: bool = True) -> Iterator[str]:
    """The status must be that of value and bound; parameters as those of `claim_faults`.

    Parameters
    ----------
    claims : status, value and bound, as shown and as exact keys
    solved : whether there is a solution
    noun : what a solution is called
    exact : whether the method proves; a heuristic's answer stays ``feasible`` where it meets the bound
    """
    value, bound = claims.value_key, claims.bound_key
    for field, text, key in (("value", claims.value_exact, value), ("bound", claims.bound_exact, bound)):
        if key is not None and text != str(key):
            yield f"{field}_exact: {text}, expected {key}"
    if solved == (value is None):
        yield f"value: expected one with a {noun}, and none without"
    if value is not None and bound is not None and bound > value:
        yield f"bound: {claims.bound} above the value {claims.value}"
    proven = value is not None and bound == value
    is_claimed = claims.status == "optimal"
    if is_claimed and not exact:
        yield "status: optimal, by a heuristic"
    if is_claimed != proven and (exact or is_claimed):
        yield f"status: {claims.status}, but value and bound are {'equal' if proven else 'not equal'}"
    if claims.status in _SOLVED and not solved:
        yield f"status: {claims.status} without a {noun}"
    if claims.status in _UNSOLVED and solved:
        yield f"status: {claims.status} with a {noun}"


def metric_faults(stored: Record, fresh: Record) -> Iterator[str]:
    """Figures that are not those of the evaluator."""
    reported = stored.model_dump()
    for field, value in fresh.model_dump().items():
        if reported[field] != value:
            text = f"{reported[field]}, the evaluator finds {value}"
            yield f"metrics.{field}: {text if len(text) < 120 else 'differs from the evaluation'}"


def totals_faults(document: ResultDocument, where: str) -> list[str]:
    """A head that is not that of the layers, and totals that are not their sums."""
    try:
        faults = [*head_faults(document)]
        engine = document.arch.build(where)
        fresh = totals_record(parse_objective(document.objective), engine, document.layers).model_dump()
    except InputError as error:
        return [str(error)]
    stored = document.totals.model_dump()
    return faults + [
        f"totals.{field}: {stored[field]}, the layers add up to {value}"
        for field, value in fresh.items()
        if stored[field] != value and (field in document.totals.model_fields_set or field not in _ADDED)
    ]
