"""CP-SAT: its model says what the expressions say, and its proofs agree with plain enumeration."""

from __future__ import annotations

import json
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from ortools.sat.python import cp_model

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.problem import LayerProblem, layer_problem
from tilewright.formulation.result import SearchResult, Status
from tilewright.formulation.search import Limits
from tilewright.hardware.load import load_engine
from tilewright.solvers.cpsat import outer as outer_module
from tilewright.solvers.cpsat import statement as statement_module
from tilewright.solvers.cpsat.dive import Dive
from tilewright.solvers.cpsat.encode import encode
from tilewright.solvers.cpsat.ends import Open, everything, probe
from tilewright.solvers.cpsat.outer import confined, outer_tiles
from tilewright.solvers.cpsat.statement import Stated, state
from tilewright.solvers.exhaustive import minima, values
from tilewright.solvers.solve import solve
from tilewright.solvers.tables import Tables
from tilewright.workloads.operators import conv2d

MODELS = ("dmazerunner", "hierarchy")
OPTIMA = Path(__file__).parent.parent / "data" / "dmazerunner_layers.json"


def tables_of(problem: LayerProblem) -> Tables:
    statement = problem.statement
    return Tables(
        problem.space.groups, [statement.energy, statement.cycles, *(limit.expr for limit in problem.limits)]
    )


def optimum(problem: LayerProblem) -> Fraction | None:
    """The least key by enumeration, ``None`` where no mapping is legal."""
    return min((candidate.key for candidate in minima(problem)), default=None)


def solved(stated: Stated) -> tuple[int, int | None]:
    """Status and objective of a model on its own."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(stated.decisions.model)
    return status, solver.value(stated.objective) if status == cp_model.OPTIMAL else None


def plain(problem: LayerProblem) -> Stated:
    """The model without anything left out."""
    tables = tables_of(problem)
    return state(problem, tables, everything(problem, tables), None)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=60)
@given(data=st.data())
def test_model_alone_has_the_optimum(model: str, data: st.DataObject) -> None:
    """Without cutoff, filter or table, the model's optimum is the least key of all mappings."""
    problem = data.draw(instances(model, largest=4000, constrained=True)).problem()
    if not all(len(group) for group in problem.space.groups):
        return
    want = optimum(problem)
    status, value = solved(plain(problem))
    if want is None:
        assert status == cp_model.INFEASIBLE
    else:
        assert value == want * problem.key_scale


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=40)
@given(data=st.data())
def test_model_at_one_mapping_is_the_statement(model: str, data: st.DataObject) -> None:
    """With every decision fixed, the least objective is the exact value of the statement."""
    problem = data.draw(instances(model, largest=100_000)).problem()
    tables = tables_of(problem)
    if not all(tables.sizes):
        return
    rows = [data.draw(st.integers(0, size - 1)) for size in tables.sizes]
    chosen = tuple(data.draw(st.sampled_from(selector.domain)) for selector in problem.space.selectors)
    stated = plain(problem)
    assignment = {**tables.assignment(rows), **dict(zip(problem.space.selectors, chosen, strict=True))}
    for literals, row in zip(stated.decisions.rows, rows, strict=True):
        stated.decisions.model.add(literals[row] == 1)
    for selector, value in zip(problem.space.selectors, chosen, strict=True):
        stated.decisions.model.add(stated.decisions.selectors[selector][value] == 1)
    status, objective = solved(stated)
    legal = all(evaluate(limit.expr, assignment) <= limit.bound for limit in problem.limits)
    if legal:
        assert objective == evaluate(problem.key, assignment)
    else:
        assert status == cp_model.INFEASIBLE


def agrees(instance: Instance, limits: Limits | None = None) -> SearchResult:
    """Solve and compare value, status and bound with enumeration."""
    problem = instance.problem()
    want = optimum(problem)
    found = solve(problem, "cpsat", limits or Limits())
    if want is None:
        assert found.status is Status.INFEASIBLE
        assert found.mapping is None
    else:
        assert found.status is Status.OPTIMAL
        assert found.value == found.bound == want
    return found


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=100)
@given(data=st.data())
def test_solver_agrees_with_enumeration(model: str, data: st.DataObject) -> None:
    """Same optimum and same verdict of infeasibility, over all objectives and with constraints."""
    agrees(data.draw(instances(model, largest=20_000, constrained=True)))


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=20)
@given(data=st.data())
def test_solver_agrees_without_a_dive(model: str, data: st.DataObject) -> None:
    """CP-SAT finds the optimum by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        agrees(data.draw(instances(model, largest=4000, constrained=True)))


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25)
@given(data=st.data())
def test_scaled_objectives_stay_exact(model: str, data: st.DataObject) -> None:
    """With far fewer bits than the key needs, the proof is still exact."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_module, "PRODUCT", 1 << 34)
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        objectives = ("edp", "ed2p", "E^2*D^3")
        agrees(data.draw(instances(model, largest=4000, objectives=objectives)))
