"""CP-SAT: its model says what the expressions say, and its proofs agree with plain enumeration."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from ortools.sat.python import cp_model
from reference import convolution, load

from tilewright.formulation.expression.exact import ExactReader, evaluate
from tilewright.formulation.mapping import Mapping, Storage
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.problem import LayerProblem, layer_problem
from tilewright.formulation.result import SearchResult, Status
from tilewright.formulation.search import Limits, Search
from tilewright.formulation.tables import Tables
from tilewright.hardware.load import load_engine
from tilewright.solvers.cpsat import expansion as expansion_module
from tilewright.solvers.cpsat import statement as statement_module
from tilewright.solvers.cpsat.dive import Dive
from tilewright.solvers.cpsat.encode import encode
from tilewright.solvers.cpsat.ends import everything, probe
from tilewright.solvers.cpsat.expansion import Expansion
from tilewright.solvers.cpsat.outer import confined, outer_tiles
from tilewright.solvers.cpsat.statement import Stated, state
from tilewright.solvers.exhaustive import minima
from tilewright.solvers.solve import solve
from tilewright.workloads.layer_text import parse_layer

MODELS = ("dmazerunner", "hierarchy")
LAYERS = load("dmazerunner_optima.json", "layers")
OPTIMA = {
    (name, best["objective"]): best["value"]
    for name, row in LAYERS.items()
    for best in row["best"]
    if best["space"] == "exhaustive"
}


def layer(name: str, objective: str) -> LayerProblem:
    """One of dMazeRunner's layers on its machine."""
    operator, engine = convolution(LAYERS[name]), load_engine("dmazerunner-256")
    return layer_problem(operator, engine, parse_objective(objective))


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
@settings(max_examples=50)
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
@settings(max_examples=80)
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


@settings(max_examples=20)
@given(instances("dmazerunner", largest=4000))
def test_unexpanded_products_agree(instance: Instance) -> None:
    """Where expressions are too many to push products into them, the proof is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansion_module, "LARGEST", 0)
        agrees(instance)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=30)
@given(data=st.data())
def test_expansion_keeps_values(model: str, data: st.DataObject) -> None:
    """Products pushed into maxima and cases have the value that they had."""
    problem = data.draw(instances(model)).problem()
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


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=40)
@given(data=st.data())
def test_filters_keep_what_is_better(model: str, data: st.DataObject) -> None:
    """Every mapping below the cutoff survives, and its outer tile costs no more than it does."""
    problem = data.draw(instances(model, largest=4000, constrained=True)).problem()
    tables = tables_of(problem)
    if not all(tables.sizes):
        return
    candidates = list(islice(minima(problem), 50))
    if not candidates:
        return
    best = min(candidates, key=lambda candidate: candidate.key)
    cutoff = int(best.key * problem.key_scale) + 1
    left = probe(problem, tables, everything(problem, tables), cutoff, Limits())
    outer = outer_tiles(problem, tables, left, cutoff)
    assert outer.least_key(*problem.objective.key_powers) < cutoff
    left = confined(outer, problem, left)
    assert all(row in rows for row, rows in zip(best.rows, left.rows, strict=True))
    assert best.selectors in left.choices


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_published_layer(objective: str) -> None:
    """The optima of one of dMazeRunner's layers, proven by CP-SAT alone."""
    found = solve(layer("conv5_2", objective), "cpsat")
    assert (found.status, found.value) == (Status.OPTIMAL, OPTIMA["conv5_2", objective])


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_all_published_layers(name: str, objective: str) -> None:
    """All six layers within five minutes each; where no optimum is published, branch and bound has it."""
    problem = layer(name, objective)
    found = solve(problem, "cpsat", Limits(seconds=300))
    want = OPTIMA.get((name, objective)) or solve(problem, "branch").value
    assert (found.status, found.value, found.bound) == (Status.OPTIMAL, want, want)


def test_objective_beyond_64_bits() -> None:
    """A key of more than 90 bits is proven exactly."""
    operator = parse_layer("conv:N=16,K=256,C=256,P=14,Q=14,R=3,S=3,stride=1,pad=1")[1]
    problem = layer_problem(operator, load_engine("tpu-edge"), parse_objective("ed2p"), factors="perfect")
    found = solve(problem, "cpsat")
    assert found.value is not None
    assert found.value * problem.key_scale > 1 << 64
    assert found.status is Status.OPTIMAL
    assert found.value == solve(problem, "branch").value


def test_counts_beyond_64_bits_are_an_error() -> None:
    """A layer whose counts do not fit ends with what was found before, and says why."""
    operator = parse_layer("gemm:M=1048576,N=1048576,K=1048576")[1]
    engine = load_engine("tpu-edge")
    problem = layer_problem(operator, engine, parse_objective("energy"), factors="perfect")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        found = solve(problem, "cpsat", Limits(seconds=20))
    assert found.status is Status.ERROR
    assert "too large" in found.message


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_time_limit(seconds: float) -> None:
    """The limit holds for the whole call, and the bound is valid."""
    problem = layer("conv2_2", "cycles")
    start = time.monotonic()
    found = solve(problem, "cpsat", Limits(seconds=seconds))
    assert time.monotonic() - start < seconds + 1
    assert found.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert found.bound is not None
    assert found.value is not None
    assert 0 < found.bound <= 2727424 <= found.value


def test_stop_event() -> None:
    """A stop from outside ends the proof within a second and keeps the incumbent."""
    limits = Limits()
    timer = threading.Timer(3.0, limits.stop.set)
    timer.start()
    found = solve(layer("conv2_2", "cycles"), "cpsat", limits)
    timer.cancel()
    assert found.wall_seconds < 4
    assert found.status is Status.INTERRUPTED
    assert found.mapping is not None


def test_gap() -> None:
    """With a gap allowed, the search ends once it is reached."""
    found = solve(layer("conv5_2", "energy"), "cpsat", Limits(gap=0.05))
    assert found.gap is not None
    assert found.gap <= 0.05


def test_deterministic_runs_agree() -> None:
    """Two reproducible runs have the same trace but for the times."""
    traces = []
    for _ in range(2):
        found = solve(layer("conv5_2", "energy"), "cpsat", Limits(seconds=60, deterministic=True, seed=3))
        assert found.status is Status.OPTIMAL
        traces.append([(point.value, point.bound, point.source) for point in found.trace])
    assert traces[0] == traces[1]


def test_warm_start_is_used() -> None:
    """A mapping given at the start is the first incumbent, and the point that the descent begins with."""
    problem = layer("conv5_2", "energy")
    best = solve(problem, "branch")
    assert best.mapping is not None
    tables = tables_of(problem)
    point = encode(problem, tables, best.mapping)
    assert point is not None
    assert point.key == best.value
    found = solve(problem, "cpsat", warm_starts=[best.mapping])
    assert found.trace[0].value == found.value == best.value
    assert found.status is Status.OPTIMAL


def test_mapping_outside_the_space_is_no_point() -> None:
    """An uneven or imperfect mapping cannot be read back where the space has none."""
    operator = parse_layer("gemm:M=4,N=4,K=4")[1]
    problem = layer_problem(
        operator, load_engine("tpu-edge"), parse_objective("edp"), constraints=["spatial(M)=2"]
    )
    stores = [
        Storage(tensor.name, level.name)
        for level in problem.engine.levels
        for tensor in operator.tensors
        if tensor.role in level.keeps
    ]
    assert encode(problem, tables_of(problem), Mapping(tuple(stores))) is None


def test_wrong_model_is_an_error() -> None:
    """A solution that the evaluator does not confirm ends the search with an error, not with a proof."""
    operator = parse_layer("gemm:M=4,N=4,K=4")[1]
    problem = layer_problem(operator, load_engine("tpu-edge"), parse_objective("energy"))

    def reject(_search: Search, _mapping: Mapping, _source: str, heuristic: bool = False) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        patch.setattr(Search, "offer", reject)
        found = solve(problem, "cpsat", Limits(seconds=60))
    assert found.status is Status.ERROR
    assert "evaluator" in found.message


def test_capped_metrics() -> None:
    """A cap on one metric is a constraint of the other's proof."""
    operator, engine = parse_layer("gemm:M=64,N=48,K=36")[1], load_engine("nvdla-256")
    free = solve(layer_problem(operator, engine, parse_objective("energy")), "branch")
    assert free.evaluation is not None
    cap = f"cycles<={free.evaluation.cycles - 1}"
    problem = layer_problem(operator, engine, parse_objective("energy"), constraints=[cap])
    found = solve(problem, "cpsat")
    assert found.status is Status.OPTIMAL
    assert found.value == solve(problem, "branch").value
    assert found.evaluation is not None
    assert found.evaluation.cycles < free.evaluation.cycles


def test_roots() -> None:
    """Integer roots are exact below and beyond 64 bits."""
    for number in (0, 1, 7, 8, 26, 27, 10**30 - 1, 10**30):
        for power in (1, 2, 3, 5):
            root = statement_module._root(number, power)
            assert root**power <= number < (root + 1) ** power
