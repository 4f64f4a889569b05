"""Branch and bound against the exhaustive oracle and published optima."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from fractions import Fraction

import pytest
from clocks import delay
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from reference import convolution, load

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import large_problems
from tilewright.solvers.mapping.compiled import program
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree import layout, tree
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d

OPTIMA = load("dmazerunner_optima.json", "layers")
CONV2_2 = {"edp": 7041210790216064, "energy": 2502735729, "cycles": 2727424}  # proven here
MODELS = st.sampled_from(["hierarchy", "dmazerunner"])


def layer(name: str, objective: str) -> LayerProblem:
    """A layer of the dMazeRunner paper on its machine."""
    return layer_problem(
        convolution(OPTIMA[name]), load_engine("dmazerunner-256"), parse_objective(objective)
    )


@settings(max_examples=effort(22))
@given(MODELS.flatmap(lambda model: instances(model, most=24, largest=50_000)))
def test_branch_finds_what_enumeration_finds(instance: Instance) -> None:
    """Status and value equal the oracle's over both cost models and all objectives."""
    _compare(instance)


@settings(max_examples=effort(18))
@given(MODELS.flatmap(lambda model: instances(model, most=24, largest=50_000, constrained=True)))
def test_branch_finds_what_enumeration_finds_under_constraints(instance: Instance) -> None:
    """The same with rules on tiles and caps on metrics, many of which leave nothing."""
    assume(instance.constraints)
    _compare(instance)


@settings(max_examples=effort(14))
@given(instances("hierarchy", most=16, largest=20_000, factors="imperfect"))
def test_branch_finds_what_enumeration_finds_with_imperfect_factors(instance: Instance) -> None:
    """The same where tiles need not divide the tiles around them."""
    _compare(instance)


@settings(max_examples=effort(14))
@given(MODELS.flatmap(lambda model: instances(model, most=16, largest=20_000)), st.booleans())
def test_branch_leaves_out_rows_that_are_unwanted(instance: Instance, is_known: bool) -> None:
    """The same where rows are left out as in large layers, with the optimum as a start or without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "_MANY", 0)
        _compare(instance)
        oracle = solve(instance.problem(), "exhaustive")
        if is_known and oracle.answer is not None:
            again = solve(instance.problem(), "branch", warm_starts=[oracle.answer])
            assert (again.status, again.key, again.bound) == (Status.OPTIMAL, oracle.key, oracle.key)


def test_a_start_that_nothing_can_improve_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no row of any table can be better than the start, nothing is left to search."""
    monkeypatch.setattr(layout, "_MANY", 0)
    machine = load_engine("dmazerunner-256")
    dram, scratchpad, registers = machine.levels
    assert scratchpad.fanout is not None
    assert machine.dma is not None
    axis = replace(scratchpad.fanout.axes[0], size=3)
    scratchpad = replace(
        scratchpad, capacity=32, bank=None, fanout=replace(scratchpad.fanout, sharing=False, axes=(axis,))
    )
    small = replace(
        machine,
        levels=(dram, scratchpad, replace(registers, capacity=4)),
        dma=replace(machine.dma, startup=Fraction(2), per_byte=Fraction(1, 100), clock_ratio=Fraction(1)),
    )
    layer = depthwise_conv2d(n=3, c=2, r=3, s=1, p=1, q=1)
    problem = layer_problem(layer, small, parse_objective("cycles"))
    optimum = solve(problem, "exhaustive")
    assert optimum.answer is not None
    again = solve(problem, "branch", warm_starts=[optimum.answer])
    assert (again.status, again.key, again.bound) == (Status.OPTIMAL, optimum.key, optimum.key)


def _compare(instance: Instance) -> None:
    oracle, result = (solve(instance.problem(), name) for name in ("exhaustive", "branch"))
    assert oracle.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert (result.status, result.key) == (oracle.status, oracle.key)
    if result.answer is not None:
        assert result.bound == result.key
        evaluation = instance.problem().evaluate(result.answer)
        assert not evaluation.violations
        assert instance.problem().key_of(evaluation) == result.key


@settings(max_examples=effort(24))
@given(
    MODELS.flatmap(lambda model: instances(model, most=24, largest=20_000)), st.sampled_from([0.01, 0.1, 0.5])
)
def test_a_gap_that_is_asked_for_is_kept(instance: Instance, gap: float) -> None:
    """The bound is within the gap of the value, and the optimum lies between them."""
    oracle = solve(instance.problem(), "exhaustive")
    result = solve(instance.problem(), "branch", Limits(gap=gap))
    assert (result.key is None) is (oracle.key is None)
    if result.key is not None and oracle.key is not None:
        assert result.bound is not None
        assert result.bound <= oracle.key <= result.key
        assert result.key - result.bound <= result.key * Fraction(gap)
        expected = Status.OPTIMAL if result.bound == result.key else Status.FEASIBLE
        assert result.status is expected


@settings(max_examples=effort(12))
@given(MODELS.flatmap(lambda model: instances(model, most=24, largest=20_000)))
def test_two_runs_are_one(instance: Instance) -> None:
    """The same values, bounds and mapping in the same sequence."""
    result, other = (solve(instance.problem(), "branch") for _ in range(2))
    assert [(p.key, p.bound) for p in result.trace] == [(p.key, p.bound) for p in other.trace]
    assert result.answer == other.answer


@pytest.mark.parametrize("objective", ["edp", "energy", "cycles"])
@pytest.mark.parametrize("name", OPTIMA)
def test_optima_of_the_papers_layers(name: str, objective: str) -> None:
    """18 proofs: the optima of the published exhaustive search to the digit.

    For conv2_2 none is published; its proofs stay what they are, below the best methods that are tabulated.
    """
    result = solve(layer(name, objective), "branch")
    assert result.status is Status.OPTIMAL
    best = {row["space"]: row["value"] for row in OPTIMA[name]["best"] if row["objective"] == objective}
    assert result.key == best.get("exhaustive", CONV2_2[objective])
    assert result.key is not None
    assert all(result.key <= value for value in best.values())


def test_pruned_spaces_of_the_paper_are_reached_by_constraints() -> None:
    """OPT3 (no spatial C, R, S) as a rule: the optimum under it lies between the free and the pruned one."""
    free, engine = layer("conv4_2", "edp"), load_engine("dmazerunner-256")
    ruled = layer_problem(free.operator, engine, free.objective, constraints=["spatial=N,K,P,Q"])
    best = {row["space"]: row["value"] for row in OPTIMA["conv4_2"]["best"] if row["objective"] == "edp"}
    result = solve(ruled, "branch")
    assert result.status is Status.OPTIMAL
    assert result.key is not None
    assert best["exhaustive"] <= result.key <= best["OPT1+2+3"]


def test_no_time_gives_no_claim() -> None:
    """With a limit of zero seconds there is no mapping, and nothing is claimed that could be wrong."""
    result = solve(layer("conv5_2", "edp"), "branch", Limits(seconds=0))
    assert result.status is Status.UNKNOWN
    assert result.key is None
    assert result.bound is None or result.bound <= 6844957271165824


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.5])
def test_a_time_limit_is_kept_and_its_bound_is_valid(seconds: float) -> None:
    """What is known when time is up encloses the optimum, and the call ends in time."""
    started = time.monotonic()
    result = solve(layer("conv2_2", "cycles"), "branch", Limits(seconds=seconds, started=started))
    assert time.monotonic() - started < seconds + delay()
    assert result.status in (Status.UNKNOWN, Status.FEASIBLE, Status.OPTIMAL)
    best = min(row["value"] for row in OPTIMA["conv2_2"]["best"] if row["objective"] == "cycles")
    assert result.bound is None or result.bound <= best
    assert result.key is None or result.bound is None or result.bound <= result.key


def uncompiled(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    """A process that has no machine code yet, where compiling takes until it is released."""
    honest = program._compile
    monkeypatch.setattr(program, "READY", threading.Event())
    monkeypatch.setattr(program, "_compiling", [])
    monkeypatch.setattr(program, "is_compiled", lambda: program.READY.is_set())
    monkeypatch.setattr(program, "_compile", lambda: release.wait(60) and honest())


def test_compiling_goes_on_from_search_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches whose limits are shorter than compiling ask for it once, and those after it prove."""
    release = threading.Event()
    uncompiled(monkeypatch, release)
    problem = layer("conv5_1", "energy")
    results = [solve(problem, name, Limits(seconds=0.3)) for name in ("branch", "auto")]
    assert [result.status for result in results] == ["feasible", "feasible"]
    assert all("annealed only" in result.message for result in results)
    (compiling,) = program._compiling
    release.set()
    compiling.join(60)
    assert solve(problem, "branch", Limits(seconds=20)).status == "optimal"
    assert program._compiling == [compiling]


def test_machine_code_that_cannot_be_made_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told with the incumbent that annealing found, and tried again by the next search."""
    uncompiled(monkeypatch, threading.Event())

    def fail() -> None:
        raise ValueError("no compiler")

    monkeypatch.setattr(program, "_compile", fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="no compiler"):
            solve(layer("conv5_1", "energy"), "branch")


@pytest.mark.parametrize("seconds", [0.5, None])
def test_a_mapping_before_anything_is_compiled(
    seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run of an installation has a mapping and a bound however short its limit."""
    problem = layer("conv5_1", "energy")
    optimum = solve(problem, "branch").key
    assert optimum is not None
    release = threading.Event()
    if seconds is None:
        release.set()
    uncompiled(monkeypatch, release)
    result = solve(problem, "branch", Limits(seconds=seconds))
    release.set()
    assert result.bound is not None
    assert result.key is not None
    assert result.bound <= optimum <= result.key
    assert ("annealed only" in result.message) == (seconds is not None)
    assert result.status == ("optimal" if seconds is None else "feasible")


@pytest.mark.parametrize("are_known", [True, False])
def test_a_hard_search_anneals_unless_the_best_of_perfect_factors_is_known(
    are_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take part in it where they are few enough; either way the optimum is the same."""
    problem = layer_problem(
        conv2d(k=8, c=6, p=5, q=7, r=3, s=3), load_engine("eyeriss-168"), parse_objective("edp")
    )
    optimum = solve(problem, "branch").key
    monkeypatch.setattr(tree, "_EASY", 0)
    if not are_known:
        monkeypatch.setattr(large_problems, "MOST", 0)
    result = solve(problem, "branch")
    methods = {method.method for method in result.effort.methods}
    assert ("perfect factors" in methods, "annealing" in methods) == (are_known, not are_known)
    assert (result.status, result.key) == (Status.OPTIMAL, optimum)


def test_a_stop_from_outside_returns_the_incumbent() -> None:
    """A search that is stopped by its listener keeps what it has found, with a bound below it."""
    limits = Limits()
    result = solve(
        layer("conv5_2", "edp"),
        "branch",
        limits,
        listener=lambda point: limits.stop.set() if point.improved else None,
    )
    assert result.key is not None
    assert result.status is Status.INTERRUPTED or result.bound == result.key
    assert result.bound is None or result.bound <= 6844957271165824 <= result.key


def test_a_warm_start_is_where_the_search_begins() -> None:
    """An optimal mapping given at the start is confirmed and never left; a broken one is ignored."""
    problem = layer("conv5_2", "edp")
    first = solve(problem, "branch")
    assert first.answer is not None
    whole = Mapping(tuple(node for node in first.answer.nodes if isinstance(node, Storage)))
    inside = tuple(Temporal(dim, 1) for dim in problem.operator.bounds)
    overfull = Mapping((*whole.nodes, *inside))
    assert problem.evaluate(overfull).violations
    again = solve(problem, "branch", warm_starts=[overfull, first.answer])
    assert (again.status, again.key) == (Status.OPTIMAL, first.key)
    assert [point.key for point in again.trace if point.improved] == [first.key]
    assert again.trace[0].origin is Origin.GIVEN


def test_what_cannot_fit_is_infeasible() -> None:
    """A machine whose registers hold less than one element of each operand has no mapping."""
    operator = conv2d(k=2, c=2, p=2, q=2, r=1, s=1)
    engine = load_engine("dmazerunner-256")
    result = solve(
        layer_problem(operator, engine, parse_objective("edp"), constraints=["tile(K@RF)>=4"]), "branch"
    )
    assert result.status is Status.INFEASIBLE
    assert result.answer is None
    assert result.message
