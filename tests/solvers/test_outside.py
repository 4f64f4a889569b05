"""Starts from outside the searched space: they never touch a claim, and are reported beside it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from brute import every_mapping
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import OBJECTIVES, dmazerunners, hierarchies, mappings, operators

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.answers.answer_sets import best_mappings, optimal_mappings, pareto_front
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.large_problems import offer_initial_solution
from tilewright.solvers.mapping.methods import method
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.running import run_method
from tilewright.workloads.mapping.layer_text import parse_layer

FACTORS = {True: "perfect", False: "imperfect"}


def legal_key(problem: LayerProblem, mapping: Mapping) -> Fraction | None:
    """The key of a legal mapping."""
    try:
        evaluation = problem.evaluate(mapping)
    except InputError:
        return None
    return None if evaluation.violations else problem.key_of(evaluation)


def optimum(problem: LayerProblem) -> Fraction | None:
    """The least key of the space, by writing out and evaluating all of it."""
    perfect = problem.space.nest.perfect
    keys = [
        legal_key(problem, mapping) for mapping in every_mapping(problem.operator, problem.engine, perfect)
    ]
    return min((key for key in keys if key is not None), default=None)


@settings(max_examples=effort(7))
@given(st.data())
def test_random_starts_from_outside_never_touch_a_claim(data: st.DataObject) -> None:
    """Status, value and bound are those of the space written out; the best start from outside is beside."""
    model = data.draw(st.sampled_from(["hierarchy", "hierarchy", "hierarchy", "dmazerunner"]))
    operator = data.draw(operators(most=6))
    engine = data.draw(hierarchies() if model == "hierarchy" else dmazerunners())
    perfect = model == "dmazerunner" or data.draw(st.booleans())
    objective = parse_objective(data.draw(st.sampled_from(OBJECTIVES)))
    try:
        problem = layer_problem(operator, engine, objective, factors=FACTORS[perfect])
    except InputError:
        assume(False)
    assume(problem.space.size <= 80)
    starts = [data.draw(mappings(operator, engine, uneven=True, perfect=False)) for _ in range(12)]
    keys = {start: legal_key(problem, start) for start in starts}
    given_ = [start for start, key in keys.items() if key is not None]
    outside = [key for start in given_ if problem.outside(start) and (key := keys[start]) is not None]
    least = optimum(problem)
    for solver in ("branch", "exhaustive"):
        result = solve(problem, solver, Limits(seconds=60), warm_starts=given_)
        assert result.status is (Status.INFEASIBLE if least is None else Status.OPTIMAL)
        assert (result.key, result.bound) == (least, least)
        assert (None if result.out_of_space is None else result.out_of_space.key) == min(
            outside, default=None
        )
        if result.answer is not None:
            assert problem.outside(result.answer) is None


def small_machine(size: int = 7) -> Engine:
    """DRAM and a buffer of a few elements."""
    unit = Fraction(1)
    return Engine(
        "small",
        "hierarchy",
        16,
        unit,
        Fraction(500),
        (MemoryLevel("DRAM", None, 100 * unit, 100 * unit), MemoryLevel("BUF", size, unit, unit)),
    )


def stores(level: str, tensors: str = "ABC") -> list[Node]:
    return [Storage(tensor, level) for tensor in tensors]


ANY_TILE = Mapping(
    (
        *stores("DRAM"),
        Temporal("M", 8),
        Temporal("K", 1),
        *stores("BUF"),
        Temporal("M", 4),
        Temporal("K", 1),
        Spatial("M", 1, "x"),
        *stores("RF"),
        Temporal("M", 1),
    )
)
SKIPS = Mapping(
    (
        *stores("DRAM"),
        *stores("BUF", "AB"),
        Temporal("N", 1),
        Temporal("M", 1),
        *stores("RF"),
        Temporal("K", 1),
    )
)


def tiny() -> Engine:
    """The machine on which arbitrary tiles gain: a buffer of 24 elements that overlaps with transfers."""
    unit = Fraction(1)
    fan = Fanout((ArrayAxis("x", 4),), unit)
    return Engine(
        "tiny",
        "hierarchy",
        16,
        unit,
        Fraction(500),
        (
            MemoryLevel(
                "DRAM", None, 100 * unit, 100 * unit, read_bandwidth=4 * unit, write_bandwidth=4 * unit
            ),
            MemoryLevel("BUF", 64, 6 * unit, 6 * unit, fanout=fan, double_buffered=True),
            MemoryLevel("RF", 8, unit, unit),
        ),
    )


def better_starts(problem: LayerProblem) -> tuple[Fraction, list[tuple[Mapping, Fraction]]]:
    """The optimum of the space, and uneven mappings below it, by plain search around the space's own."""
    least = optimum(problem)
    assert least is not None
    better_starts: list[tuple[Mapping, Fraction]] = []
    for inside in every_mapping(problem.operator, problem.engine, problem.space.nest.perfect):
        nodes = list(inside.nodes)
        for index, node in enumerate(nodes[:-1]):
            if isinstance(node, Storage) and not isinstance(nodes[index + 1], Storage):
                swapped = Mapping((*nodes[:index], nodes[index + 1], node, *nodes[index + 2 :]))
                key = legal_key(problem, swapped)
                if key is not None and key < least and problem.outside(swapped):
                    better_starts.append((swapped, key))
    return least, better_starts


@pytest.fixture(scope="module")
def beaten() -> tuple[LayerProblem, Fraction, list[tuple[Mapping, Fraction]]]:
    """A problem whose space has worse optima than some uneven mappings have."""
    operator = parse_layer("gemm:M=2,N=4,K=2")[1]
    problem = layer_problem(operator, small_machine(), parse_objective("energy"), factors="perfect")
    return problem, *better_starts(problem)


@pytest.mark.parametrize("name", ["branch", "exhaustive", "auto", "cpsat", "highs"])
def test_better_starts_leave_the_claim_alone(
    beaten: tuple[LayerProblem, Fraction, list[tuple[Mapping, Fraction]]], name: str
) -> None:
    """Every exact solver proves the optimum of the space, though far better mappings are given."""
    problem, least, better = beaten
    assert better
    result = solve(problem, name, Limits(seconds=60), warm_starts=[start for start, _ in better])
    assert (result.status, result.key, result.bound) == (Status.OPTIMAL, least, least)
    assert result.out_of_space is not None
    assert result.out_of_space.key == min(key for _, key in better)
    assert "even storage begins outside all loops" in result.out_of_space.reason
    assert all(point.key is None or point.key >= least for point in result.trace)


@pytest.mark.parametrize("name", HEURISTICS.names())
def test_heuristics_leave_it_alone_too(
    beaten: tuple[LayerProblem, Fraction, list[tuple[Mapping, Fraction]]], name: str
) -> None:
    """No heuristic passes on a start from outside the space as its own answer."""
    problem, least, better = beaten
    limits = Limits(seconds=10)
    search = LayerSearch(problem, limits, exact=False)
    for start, _ in better:
        assert search.offer(start, name, origin=Origin.HEURISTIC) is None
    try:
        run_method(search, method(name), name)
    except InputError:
        pytest.skip("not for this cost model")
    assert search.key is None or search.key >= least
    assert search.answer is None or problem.outside(search.answer) is None


def test_what_an_exact_solver_confirms_must_lie_in_the_space(
    beaten: tuple[LayerProblem, Fraction, list[tuple[Mapping, Fraction]]],
) -> None:
    """A solver that takes a mapping from outside for one of the space is stopped."""
    problem, _, better = beaten
    with pytest.raises(RuntimeError, match="takes for legal"):
        LayerSearch(problem, Limits()).confirm(better[0][0], "solver")


def test_lists_and_fronts_hold_mappings_of_the_space_only(
    beaten: tuple[LayerProblem, Fraction, list[tuple[Mapping, Fraction]]],
) -> None:
    """Best, optimal and undominated mappings all lie in the space."""
    problem, least, _ = beaten
    for answers in (best_mappings(problem, 20), optimal_mappings(problem), pareto_front(problem)):
        assert answers.complete
        assert all(problem.outside(solution.mapping) is None for solution in answers.solutions)
        assert min(problem.key_of(solution.evaluation) for solution in answers.solutions) == least


def test_arbitrary_tiles_and_skipped_levels() -> None:
    """A tile that is no ceil(outer/n) is legal and beside; a skipped level is illegal and not even that."""
    problem = layer_problem(parse_layer("gemm:M=10,N=1,K=3")[1], tiny(), parse_objective("edp"))
    plain = solve(problem, "branch")
    assert legal_key(problem, ANY_TILE) is not None
    result = solve(problem, "branch", warm_starts=[ANY_TILE])
    assert (result.status, result.key, result.bound) == (plain.status, plain.key, plain.bound)
    assert result.out_of_space is not None
    assert result.out_of_space.reason == "the tile 8 of M at DRAM is not ceil(10/n): 2 trips need 5 at least"
    problem = layer_problem(parse_layer("gemm:M=2,N=2,K=2")[1], tiny(), parse_objective("energy"))
    broken = problem.evaluate(SKIPS)
    assert broken.violations == ("C skips BUF, which it may not bypass",)
    result = solve(problem, "branch", warm_starts=[SKIPS])
    assert result.out_of_space is None
    assert result.key == solve(problem, "branch").key


def test_the_opening_takes_caps_in_fractions() -> None:
    """A problem with a cap that is no decimal text is opened from its own perfect factors."""
    problem = layer_problem(parse_layer("gemm:M=4,N=4,K=4")[1], tiny(), parse_objective("cycles"))
    capped = problem.capped("energy", Fraction(10**9, 3))
    search = LayerSearch(capped, Limits())
    offer_initial_solution(search, Branch())
    assert search.key is not None


def test_a_machine_with_bypasses_is_none_of_dmazerunners() -> None:
    """That model counts every tensor at every level, so it refuses machines where one may skip a level."""
    from tilewright.hardware.mapping.load import load_engine
    from tilewright.workloads.mapping.operator import Role

    engine = load_engine("dmazerunner-256")
    dram, spm, rf = engine.levels
    loose = replace(engine, levels=(dram, replace(spm, may_bypass=frozenset({Role.INPUT})), rf))
    operator = parse_layer("conv:K=2,C=2,P=2,Q=2,R=1,S=1")[1]
    with pytest.raises(InputError, match="no level that inputs bypass"):
        layer_problem(operator, loose, parse_objective("edp"))
    problem = layer_problem(operator, engine, parse_objective("edp"))
    nodes: list[Node] = [Storage(t.name, level.name) for level in (dram, rf) for t in operator.tensors]
    loops: list[Node] = [Temporal(dim, 1) for dim in operator.bounds]
    with pytest.raises(InputError, match="needs I stored in SPM"):
        problem.evaluate(Mapping((*nodes, *loops)))
