"""CP-SAT: its model says what the expressions say, and its proofs agree with plain enumeration."""

from __future__ import annotations

import threading
import time

import pytest
from clocks import delay
from reference import convolution, load

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.formulation.search import Search
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.presolve.dive import Dive
from tilewright.solvers.mapping.presolve.encode import encode
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

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


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_all_published_layers(name: str, objective: str) -> None:
    """All six layers within five minutes each; where no optimum is published, branch and bound has it."""
    problem = layer(name, objective)
    result = solve(problem, "cpsat", Limits(seconds=300))
    want = OPTIMA.get((name, objective)) or solve(problem, "branch").key
    assert (result.status, result.key, result.bound) == (Status.OPTIMAL, want, want)


def test_objective_beyond_64_bits() -> None:
    """A key of more than 90 bits is proven exactly."""
    operator = parse_layer("gemm:M=2048,N=2048,K=2048")[1]
    problem = layer_problem(operator, load_engine("tpu-edge"), parse_objective("ed2p"), factors="perfect")
    result = solve(problem, "cpsat")
    assert result.key is not None
    assert result.key * problem.key_scale > 1 << 64
    assert result.status is Status.OPTIMAL
    assert result.key == solve(problem, "branch").key


def test_counts_beyond_64_bits_are_an_error() -> None:
    """A layer whose counts do not fit ends with what was found before, and says why."""
    operator = parse_layer("gemm:M=1048576,N=1048576,K=1048576")[1]
    engine = load_engine("tpu-edge")
    problem = layer_problem(operator, engine, parse_objective("energy"), factors="perfect")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        result = solve(problem, "cpsat", Limits(seconds=20))
    assert result.status is Status.ERROR
    assert "too large" in result.message


@pytest.mark.parametrize("seconds", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
def test_time_limit(seconds: float) -> None:
    """The limit holds for the whole call, and the bound is valid."""
    problem = layer("conv2_2", "cycles")
    start = time.monotonic()
    result = solve(problem, "cpsat", Limits(seconds=seconds))
    assert time.monotonic() - start < seconds + delay()
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.bound is not None
    assert result.key is not None
    assert 0 < result.bound <= 2727424 <= result.key


def test_stop_event() -> None:
    """A stop from outside ends the proof within a second and keeps the incumbent."""
    limits = Limits()
    timer = threading.Timer(1.0, limits.stop.set)
    timer.start()
    result = solve(layer("conv2_2", "cycles"), "cpsat", limits)
    timer.cancel()
    assert result.wall_seconds < 1 + delay()
    assert result.status is Status.INTERRUPTED
    assert result.answer is not None


def test_gap() -> None:
    """With a gap allowed, the search ends once it is reached."""
    engine, operator = load_engine("dmazerunner-256"), parse_layer("gemm:M=12,N=8,K=12")[1]
    result = solve(layer_problem(operator, engine, parse_objective("energy")), "cpsat", Limits(gap=0.05))
    assert result.gap is not None
    assert result.gap <= 0.05


def test_deterministic_runs_agree() -> None:
    """Two reproducible runs have the same trace but for the times."""
    traces = []
    engine, operator = load_engine("dmazerunner-256"), parse_layer("gemm:M=6,N=8,K=6")[1]
    for _ in range(2):
        problem = layer_problem(operator, engine, parse_objective("energy"))
        result = solve(problem, "cpsat", Limits(seconds=60, deterministic=True, seed=3))
        assert result.status is Status.OPTIMAL
        traces.append([(point.key, point.bound, point.source) for point in result.trace])
    assert traces[0] == traces[1]


def test_warm_start_is_used() -> None:
    """A mapping given at the start is the first incumbent, and the point that the descent begins with."""
    problem = layer("conv5_2", "energy")
    best = solve(problem, "branch")
    assert best.answer is not None
    tables = tables_of(problem)
    point = encode(problem, tables, best.answer)
    assert point is not None
    assert point.key == best.key
    result = solve(problem, "cpsat", warm_starts=[best.answer])
    assert result.trace[0].key == result.key == best.key
    assert result.status is Status.OPTIMAL


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

    def reject(_search: LayerSearch, _mapping: Mapping, _source: str, heuristic: bool = False) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        patch.setattr(Search, "offer", reject)
        result = solve(problem, "cpsat", Limits(seconds=60))
    assert result.status is Status.ERROR
    assert "evaluator" in result.message


def test_capped_metrics() -> None:
    """A cap on one metric is a constraint of the other's proof."""
    operator, engine = parse_layer("gemm:M=64,N=48,K=36")[1], load_engine("nvdla-256")
    free = solve(layer_problem(operator, engine, parse_objective("energy")), "branch")
    assert free.evaluation is not None
    cap = f"cycles<={free.evaluation.cycles - 1}"
    problem = layer_problem(operator, engine, parse_objective("energy"), constraints=[cap])
    result = solve(problem, "cpsat")
    assert result.status is Status.OPTIMAL
    assert result.key == solve(problem, "branch").key
    assert result.evaluation is not None
    assert result.evaluation.cycles < free.evaluation.cycles
