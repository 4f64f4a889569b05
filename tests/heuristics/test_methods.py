"""What holds of every heuristic: legal answers, never below the optimum, never `optimal`, reproducible."""

from __future__ import annotations

import threading
from functools import lru_cache

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

SHORT = {
    "annealing": "annealing[walkers=16,steps=40]",
    "genetic": "genetic[population=20,generations=20]",
    "autotvm": "autotvm[iterations=3]",
    "random": "random[victory=50]",
}
"""Methods that run for as long as they are told to run here for a short time."""

METHODS = [SHORT.get(name, name) for name in HEURISTICS.names()]

OWN_MACHINE = {"gemmini-auto": "gemmini"}
"""Methods that know one machine alone."""
LAYER = "conv:N=2,K=32,C=16,P=14,Q=14,R=3,S=3,pad=1"


@lru_cache
def medium(arch: str, factors: str | None = "perfect", *constraints: str) -> LayerProblem:
    """A layer whose optimum is proven in a fraction of a second."""
    operator = parse_layer(LAYER)[1]
    return layer_problem(operator, load_engine(arch), parse_objective("edp"), None, constraints, factors)


@lru_cache
def optimum(arch: str, factors: str | None = "perfect", *constraints: str) -> LayerResult:
    return solve(medium(arch, factors, *constraints), "branch")


@lru_cache
def answer(method: str, arch: str = "nvdla-256") -> LayerResult:
    """What a method says of the layer, with a seed."""
    factors = None if method in OWN_MACHINE and arch == OWN_MACHINE[method] else "perfect"
    return solve(medium(arch, factors), method, Limits(seed=7))


def judged(result: LayerResult, problem: LayerProblem, proven: LayerResult) -> None:
    """The claims of a heuristic against a proof."""
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert (result.status is Status.FEASIBLE) == (result.answer is not None)
    if result.bound is not None:
        assert proven.key is None or result.bound <= proven.key
    if result.answer is not None:
        assert proven.key is not None
        evaluation = problem.evaluate(result.answer)
        assert not evaluation.violations
        assert problem.key_of(evaluation) == result.key >= proven.key


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=effort(5))
@given(data=st.data())
def test_against_the_exhaustive_oracle(method: str, data: st.DataObject) -> None:
    """On random problems of both cost models and both kinds of factors, constrained or not."""
    model = data.draw(st.sampled_from(["hierarchy", "hierarchy", "dmazerunner"]))
    factors = data.draw(st.sampled_from(["perfect", "imperfect"])) if model == "hierarchy" else None
    instance: Instance = data.draw(
        instances(model, most=16, largest=3000, constrained=data.draw(st.booleans()), factors=factors)
    )
    problem = instance.problem()
    judged(solve(problem, method), problem, solve(problem, "exhaustive"))


@pytest.mark.parametrize(
    ("method", "arch"),
    [
        pytest.param(method, arch, marks=() if (place + turn) % 4 == 0 else pytest.mark.slow)
        for place, method in enumerate(METHODS)
        for turn, arch in enumerate(["dmazerunner-256", "nvdla-256", "eyeriss-168", "tpu-edge"])
    ],
)
def test_presets(method: str, arch: str) -> None:
    """Every method finds a mapping of a common layer on every kind of machine that it knows."""
    result = answer(method, arch)
    judged(result, medium(arch), optimum(arch))
    assert (result.answer is None) == (method in OWN_MACHINE)


@pytest.mark.parametrize(("method", "arch"), OWN_MACHINE.items())
def test_a_method_of_one_machine_maps_there(method: str, arch: str) -> None:
    """A method that knows one machine alone finds a mapping there."""
    problem = medium(arch, None)
    result = solve(problem, method)
    assert result.answer is not None
    judged(result, problem, optimum(arch, None))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_answer(method: str) -> None:
    """Mapping and trace, times aside, depend on problem and seed alone."""
    first, second = answer(method), solve(medium("nvdla-256"), method, Limits(seed=7))
    assert first.answer == second.answer
    assert [(p.key, p.bound, p.source) for p in first.trace] == [
        (p.key, p.bound, p.source) for p in second.trace
    ]


@pytest.mark.parametrize("method", METHODS)
def test_demands_of_the_user_hold(method: str) -> None:
    """Constraints on tiles, spatial loops, orders and metrics."""
    demands = ("spatial=K", "trips(C@DRAM)=1", "stationary@DRAM=W", "cycles<=200000")
    judged(
        solve(medium("dmazerunner-256", None, *demands), method),
        medium("dmazerunner-256", None, *demands),
        optimum("dmazerunner-256", None, *demands),
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_stop_ends_it(method: str) -> None:
    """A method that is told to stop before it begins returns without looking for better mappings."""
    stop = threading.Event()
    stop.set()
    result = solve(medium("nvdla-256"), method, Limits(stop=stop))
    assert result.status is Status.INTERRUPTED
    assert len([point for point in result.trace if point.improved]) <= 1


@pytest.mark.parametrize("method", METHODS)
def test_offers_are_marked(method: str) -> None:
    """Every improvement is a heuristic's and bears the method's name."""
    result = answer(method, OWN_MACHINE.get(method, "nvdla-256"))
    improvements = [point for point in result.trace if point.improved]
    assert improvements
    assert {point.source for point in improvements} == {method.partition("[")[0]}
    assert all(point.origin is Origin.HEURISTIC for point in improvements)


@pytest.mark.parametrize("method", METHODS)
def test_a_layer_that_cannot_be_mapped(method: str) -> None:
    """Without any mapping a heuristic does not know; that none exists is for a solver to prove."""
    problem = medium("nvdla-256", "perfect", "spatial(K)=16", "spatial(C)=1", "cycles<=1000")
    result = solve(problem, "random[timeout=5000]" if method == SHORT["random"] else method)
    assert result.status is Status.UNKNOWN
    assert solve(problem, "branch").status is Status.INFEASIBLE


@pytest.mark.parametrize("method", METHODS)
def test_a_warm_start_is_never_made_worse(method: str) -> None:
    """Beginning with the optimum, it stays."""
    best = optimum("nvdla-256")
    assert best.answer is not None
    result = solve(medium("nvdla-256"), method, warm_starts=[best.answer])
    assert (result.status, result.key) == (Status.FEASIBLE, best.key)


def test_many_searches_in_one_process_at_once() -> None:
    """Threads that state problems and run different methods side by side give the answers of runs alone."""
    layers = ("gemm:M=12,N=8,K=6", "gemm:M=9,N=4,K=10")
    names = ("kapla", "ws1", "branch")

    def value(name: str, layer: str) -> object:
        operator = parse_layer(layer)[1]
        problem = layer_problem(operator, load_engine("eyeriss-168"), parse_objective("edp"))
        result = solve(problem, name, Limits(threads=2))
        return result.status, result.key, result.message

    alone = {(name, layer): value(name, layer) for name in names for layer in layers}
    answers: dict[tuple[int, str, str], object] = {}
    failures: list[BaseException] = []

    def work(turn: int) -> None:
        try:
            for name, layer in [*alone][turn:] + [*alone][:turn]:
                answers[turn, name, layer] = value(name, layer)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(turn,)) for turn in (0, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert answers == {(turn, *key): answer for turn in (0, 2, 4) for key, answer in alone.items()}
