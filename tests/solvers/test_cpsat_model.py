"""CP-SAT's model says what the expressions say, and what is left out of it cannot be better."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import SPACES, Instance, instances
from ortools.sat.python import cp_model

from tilewright.formulation.expression.exact import ExactReader, evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.mapping.cpsat import statement as statement_module
from tilewright.solvers.mapping.cpsat.outer_tiles import confined, join_outer_tiles
from tilewright.solvers.mapping.cpsat.statement import Stated, state
from tilewright.solvers.mapping.exhaustive import minima
from tilewright.solvers.mapping.presolve.expansion import Expansion
from tilewright.solvers.mapping.presolve.intervals import probe, whole_space


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
    run = CpSatRun(stated.decisions.model, Limits(threads=1), lambda: False)
    status = run.solve()
    return status, run.solver.value(stated.objective) if status == cp_model.OPTIMAL else None


def plain(problem: LayerProblem) -> Stated:
    """The model without anything left out."""
    tables = tables_of(problem)
    return state(problem, tables, whole_space(problem, tables), None)


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(12))
@given(data=st.data())
def test_model_alone_has_the_optimum(model: str, factors: str, data: st.DataObject) -> None:
    """Without cutoff, filter or table, the model's optimum is the least key of all mappings."""
    problem = data.draw(instances(model, factors=factors, largest=4000, constrained=True)).problem()
    if not all(len(group) for group in problem.space.groups):
        return
    want = optimum(problem)
    status, value = solved(plain(problem))
    if want is None:
        assert status == cp_model.INFEASIBLE
    else:
        assert value == want * problem.key_scale


@settings(max_examples=effort(40))
@given(st.sampled_from(SPACES).flatmap(lambda space: instances(space[0], factors=space[1], largest=1000)))
def test_a_cutoff_leaves_what_lies_below_it(instance: Instance) -> None:
    """With a cutoff one unit above the optimum, the model has the optimum still."""
    problem = instance.problem()
    want, tables = optimum(problem), tables_of(problem)
    if want is not None:
        key = int(want * problem.key_scale)
        assert solved(state(problem, tables, whole_space(problem, tables), key + 1))[1] == key


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(15))
@given(data=st.data())
def test_model_at_one_mapping_is_the_statement(model: str, factors: str, data: st.DataObject) -> None:
    """With every decision fixed, the least objective is the exact value of the statement."""
    problem = data.draw(instances(model, factors=factors, largest=100_000)).problem()
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


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(20))
@given(data=st.data())
def test_expansion_keeps_values(model: str, factors: str, data: st.DataObject) -> None:
    """Products pushed into maxima and cases have the value that they had."""
    problem = data.draw(instances(model, factors=factors)).problem()
    tables = tables_of(problem)
    if not all(tables.sizes):
        return
    rows = [data.draw(st.integers(0, size - 1)) for size in tables.sizes]
    chosen = {selector: data.draw(st.sampled_from(selector.domain)) for selector in problem.space.selectors}
    reader = ExactReader({**tables.assignment(rows), **chosen})
    expansion = Expansion(lambda _expr: 0)
    if any(reader.read(limit.expr) > limit.bound for limit in problem.limits):
        return  # an order that does not run has no meaning
    for root in (problem.statement.energy, problem.statement.cycles):
        assert reader.read(expansion.rewrite(root)) == reader.read(root)


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(15))
@given(data=st.data())
def test_filters_keep_what_is_better(model: str, factors: str, data: st.DataObject) -> None:
    """Every mapping below the cutoff survives, and its outer tile costs no more than it does."""
    problem = data.draw(instances(model, factors=factors, largest=4000, constrained=True)).problem()
    tables = tables_of(problem)
    if not all(tables.sizes):
        return
    candidates = list(islice(minima(problem), 50))
    if not candidates:
        return
    best = min(candidates, key=lambda candidate: candidate.key)
    cutoff = int(best.key * problem.key_scale) + 1
    left = probe(problem, tables, whole_space(problem, tables), cutoff, Limits())
    outer = join_outer_tiles(problem, tables, left, cutoff)
    assert outer.least_key(*problem.objective.key_powers) < cutoff
    left = confined(outer, problem, left)
    assert all(row in rows for row, rows in zip(best.rows, left.rows, strict=True))
    assert best.selectors in left.choices


def test_roots() -> None:
    """Integer roots are exact below and beyond 64 bits."""
    for number in (0, 1, 7, 8, 26, 27, 10**30 - 1, 10**30):
        for power in (1, 2, 3, 5):
            root = statement_module._root(number, power)
            assert root**power <= number < (root + 1) ** power
