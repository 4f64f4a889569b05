"""Pareto fronts, k best and all optimal mappings, and clashes, against plain enumeration."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from math import prod
from pathlib import Path

import pytest
from brute import distinct, every_mapping
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import OBJECTIVES, engines, hierarchies, operators

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answers.answer_sets import (
    best_mappings,
    minimal_conflict,
    optimal_mappings,
    pareto_front,
)
from tilewright.solvers.mapping.exhaustive import _rows, _tables, values
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import gemm
from tilewright.workloads.mapping.pointwise import elementwise

LAYERS = [
    "conv:K=4,C=2,P=4,Q=2,R=3,S=1",
    "conv:K=4,C=4,P=3,Q=3,R=2,S=2,stride=2",
    "gemm:M=6,N=4,K=8",
    "depthwise:C=6,P=4,Q=4,R=3,S=3",
]


def small_engine(model: str) -> Engine:
    """The dMazeRunner machine with four PEs and small stores."""
    engine = load_engine("dmazerunner-256")
    dram, spm, rf = engine.levels
    fan = Fanout((ArrayAxis("pe", 4),), Fraction(2))
    spm = replace(spm, capacity=64, bank=8, fanout=fan)
    return replace(engine, cost_model=model, levels=(dram, spm, replace(rf, capacity=12)))


def problem_of(
    text: str, model: str, objective: str = "edp", constraints: tuple[str, ...] = ()
) -> LayerProblem:
    operator = parse_layer(text)[1]
    engine = small_engine(model)
    return layer_problem(
        operator, engine, parse_objective(objective), constraints=constraints, factors="perfect"
    )


def enumerated(problem: LayerProblem) -> list[tuple[int, int]]:
    """Energy (scaled) and cycles of every legal decision."""
    tables = _tables(problem)
    rows = _rows(tables.sizes, 0)
    assert prod(tables.sizes) == len(rows[0])
    enumerated: list[tuple[int, int]] = []
    for selectors in cartesian(*(s.domain for s in problem.space.selectors)):
        energy, cycles, legal = values(problem, tables, rows, selectors)
        enumerated += [(int(e), int(c)) for e, c in zip(energy[legal], cycles[legal], strict=True)]
    return enumerated


@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
@pytest.mark.parametrize("text", LAYERS)
def test_front_is_the_whole_front(text: str, model: str) -> None:
    """The reported Pareto front equals the undominated points of all mappings."""
    problem = problem_of(text, model)
    points = set(enumerated(problem))
    front = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    answers = pareto_front(problem)
    scale = problem.statement.energy_scale
    assert answers.complete
    assert {(int(s.evaluation.energy * scale), s.evaluation.cycles) for s in answers.solutions} == front
    assert all(problem.evaluate(s.mapping) == s.evaluation for s in answers.solutions)


def written_out(problem: LayerProblem) -> dict[Hashable, Fraction]:
    """The key of every legal mapping of the space, by what makes mappings different."""
    operator, engine = problem.operator, problem.engine
    written_out: dict[Hashable, Fraction] = {}
    for mapping in every_mapping(operator, engine, problem.space.nest.perfect):
        evaluation = problem.evaluate(mapping)
        if not evaluation.violations:
            name, key = distinct(operator, engine, mapping), problem.key_of(evaluation)
            assert written_out.setdefault(name, key) == key  # mappings that count as one cost the same
    return written_out


@settings(max_examples=effort(4))
@given(st.data())
def test_best_and_optimal_mappings_are_those_of_the_space_written_out(data: st.DataObject) -> None:
    """The k best are the least of all different mappings, whatever loop order they have; so are optima."""
    model = data.draw(st.sampled_from(["hierarchy", "hierarchy", "dmazerunner"]))
    operator = data.draw(operators(most=8))
    engine = data.draw(engines(model))
    perfect = model == "dmazerunner" or data.draw(st.booleans())
    objective = parse_objective(data.draw(st.sampled_from(OBJECTIVES)))
    try:
        factors = "perfect" if perfect else "imperfect"
        problem = layer_problem(operator, engine, objective, factors=factors)
    except InputError:
        assume(False)
    assume(problem.with_every_order().space.size <= 120)
    every = written_out(problem)
    keys = sorted(every.values())
    for count in (1, 2, 5, 10_000):
        answers = best_mappings(problem, count)
        assert answers.complete
        assert [problem.key_of(solution.evaluation) for solution in answers.solutions] == keys[:count]
        names = {distinct(operator, engine, solution.mapping) for solution in answers.solutions}
        assert len(names) == len(answers.solutions)
        assert names <= every.keys()
    optima = optimal_mappings(problem)
    assert optima.complete
    assert len(optima.solutions) == (keys.count(keys[0]) if keys else 0)
    pairs = {
        (solution.evaluation.energy, solution.evaluation.cycles)
        for solution in best_mappings(problem, 10_000).solutions
    }
    front = {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}
    front_costs = {
        (solution.evaluation.energy, solution.evaluation.cycles)
        for solution in pareto_front(problem).solutions
    }
    assert front_costs == front


@pytest.mark.parametrize("operand", [[1, 2, 2], [2, 1, 2], [2, 2, 1]])
@pytest.mark.parametrize("model", ["hierarchy", "dmazerunner"])
def test_orders_have_their_effect_whichever_of_their_loops_run(model: str, operand: list[int]) -> None:
    """Two loops move every tensor: with either of them alone orders may reuse an operand, or not."""
    engine = small_engine(model)
    dram, spm, rf = engine.levels
    free = replace(dram, read_energy=Fraction(0), write_energy=Fraction(0))
    engine = replace(engine, levels=(free, replace(spm, capacity=32, bank=None), replace(rf, capacity=6)))
    operator = elementwise(shape=[2, 2, 2], operands=[[2, 2, 2], operand])
    problem = layer_problem(operator, engine, parse_objective("energy"), factors="perfect")
    every = written_out(problem)
    answers = best_mappings(problem, len(every) + 1)
    assert answers.complete
    assert {distinct(operator, engine, solution.mapping) for solution in answers.solutions} == every.keys()


@st.composite
def with_empty_levels(draw: st.DrawFn) -> tuple[Operator, Engine, bool]:
    """A layer on a machine of which some levels store nothing, or may store nothing; and kinds of factors."""
    operator = draw(operators(["pool", "gemm", "elementwise", "nest", "depthwise"], most=8))
    roles = {tensor.role for tensor in operator.tensors}
    engine = draw(hierarchies(levels=draw(st.integers(2, 3)), roomy=True))
    levels = list(engine.levels)
    for index in draw(st.sets(st.integers(1, len(levels) - 1), min_size=1)):
        absent = frozenset(Role) - roles
        if absent and draw(st.booleans()):
            levels[index] = replace(levels[index], keeps=absent, may_bypass=frozenset())
        else:
            levels[index] = replace(levels[index], may_bypass=levels[index].keeps)
    return operator, replace(engine, levels=tuple(levels)), draw(st.booleans())


def _compare_lists(operator: Operator, engine: Engine, perfect: bool) -> None:
    """Lists of best and of optimal mappings against the space written out."""
    try:
        problem = layer_problem(
            operator, engine, parse_objective("edp"), factors="perfect" if perfect else "imperfect"
        )
    except InputError:
        assume(False)
    assume(problem.with_every_order().space.size <= 400)
    every = written_out(problem)
    answers = best_mappings(problem, 10_000)
    assert answers.complete
    assert [problem.key_of(solution.evaluation) for solution in answers.solutions] == sorted(every.values())
    names = {distinct(operator, engine, solution.mapping) for solution in answers.solutions}
    assert names == every.keys()
    optima = optimal_mappings(problem)
    assert optima.complete
    assert len(optima.solutions) == list(every.values()).count(min(every.values(), default=Fraction(0)))


@settings(max_examples=effort(15))
@given(with_empty_levels())
def test_a_level_that_stores_nothing_makes_no_mapping_twice(case: tuple[Operator, Engine, bool]) -> None:
    """Where levels keep none of a layer's tensors, or all bypass them, each mapping is listed once."""
    _compare_lists(*case)


@pytest.mark.slow
@settings(max_examples=effort(600))
@given(with_empty_levels())
def test_many_levels_that_store_nothing(case: tuple[Operator, Engine, bool]) -> None:
    """The same, for hundreds of machines."""
    _compare_lists(*case)


def test_one_mapping_of_a_layer_without_weights_below_a_store_of_weights() -> None:
    """All loops feed the PE from one level, whatever their order and wherever they are cut: one mapping."""
    unit = Fraction(1)
    levels = (
        MemoryLevel("L0", None, Fraction(33, 2), Fraction(33, 2)),
        MemoryLevel("L1", 8, unit, unit, keeps=frozenset({Role.WEIGHT})),
    )
    engine = Engine("repeats", "hierarchy", 8, Fraction(3), Fraction(500), levels)
    problem = layer_problem(parse_layer("pool:N=1,C=2,P=1,Q=1,R=4,S=1")[1], engine, parse_objective("edp"))
    assert len(optimal_mappings(problem).solutions) == 1
    assert len(best_mappings(problem, 10).solutions) == 1


def test_a_product_of_two_numbers_is_stored_or_not() -> None:
    """A layer of one iteration has nothing to decide but what tensors bypass."""
    _, spm, _ = small_engine("hierarchy").levels
    dram = MemoryLevel("DRAM", None, Fraction(200), Fraction(200))
    engine = replace(small_engine("hierarchy"), levels=(dram, replace(spm, may_bypass=spm.keeps)))
    operator = parse_layer("gemm:M=1,N=1,K=1")[1]
    problem = layer_problem(operator, engine, parse_objective("edp"))
    every, answers = written_out(problem), best_mappings(problem, 10_000)
    assert answers.complete
    assert len(every) > 1
    names = [distinct(operator, engine, solution.mapping) for solution in answers.solutions]
    assert sorted(map(str, names)) == sorted(map(str, every))


def test_an_order_that_another_one_dominates_may_be_second() -> None:
    """The second best mapping of this layer has a loop order that is never the best."""
    unit = Fraction(1)
    levels = (MemoryLevel("DRAM", None, 100 * unit, 100 * unit), MemoryLevel("RF", 3, unit, unit))
    engine = Engine("two", "hierarchy", 16, unit, Fraction(500), levels)
    operator = parse_layer("conv:N=1,K=1,C=2,P=2,Q=1,R=2,S=1")[1]
    problem = layer_problem(operator, engine, parse_objective("energy"))
    assert [int(problem.key_of(s.evaluation)) for s in best_mappings(problem, 2).solutions] == [1854, 2256]
    every = best_mappings(problem, 50)
    assert every.complete
    assert [int(problem.key_of(s.evaluation)) for s in every.solutions] == sorted(
        int(key) for key in written_out(problem).values()
    )


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_all_optimal_mappings(objective: str) -> None:
    """Every optimal mapping is reported once, and nothing else."""
    problem = problem_of("gemm:M=2,N=2,K=3", "dmazerunner", objective)
    keys = list(written_out(problem).values())
    answers = optimal_mappings(problem)
    assert answers.complete
    assert len(answers.solutions) == keys.count(min(keys))
    assert {problem.key_of(s.evaluation) for s in answers.solutions} == {min(keys)}


def test_more_optima_than_asked_for() -> None:
    """A list that was cut off does not claim to be complete."""
    problem = problem_of("gemm:M=4,N=2,K=2", "hierarchy", "cycles")
    answers = optimal_mappings(problem, most=2)
    assert len(answers.solutions) == 2
    assert not answers.complete


def test_limits_leave_fronts_incomplete() -> None:
    """A search without time reports an incomplete front."""
    assert not pareto_front(problem_of(LAYERS[0], "hierarchy"), Limits(seconds=0.0)).complete


@pytest.mark.parametrize(
    ("constraints", "clash"),
    [
        (("cycles<=10",), {"cycles<=10"}),
        (("spatial(K)=4", "spatial(P)=2", "cycles<=100000"), {"spatial(K)=4", "spatial(P)=2"}),
        (("trips(C@DRAM)=2", "tile(C@SPM)=2"), {"trips(C@DRAM)=2", "tile(C@SPM)=2"}),
    ],
)
def test_clashing_constraints(constraints: tuple[str, ...], clash: set[str]) -> None:
    """The clash holds the demands that cannot be met together, and not the harmless ones."""
    problem = problem_of(LAYERS[0], "dmazerunner", constraints=constraints)
    conflict = minimal_conflict(problem)
    assert clash <= set(conflict)
    assert not (set(constraints) - clash) & set(conflict)


def test_capacity_clash_names_the_level() -> None:
    """A store that is too small for one element of each tensor is named."""
    engine = small_engine("hierarchy")
    tiny = replace(engine, levels=(*engine.levels[:2], replace(engine.levels[2], capacity=2)))
    problem = layer_problem(parse_layer(LAYERS[0])[1], tiny, parse_objective("edp"))
    assert minimal_conflict(problem) == ("capacity of RF",)


def test_feasible_problem_has_no_clash() -> None:
    """Nothing clashes where a mapping exists."""
    assert minimal_conflict(problem_of(LAYERS[0], "hierarchy")) == ()


def test_fronts_over_uneven_storage_hold_the_even_part() -> None:
    """The best even mapping of one objective does not stand for all others, where levels may be bypassed."""
    machines = Path(__file__).parents[2] / "studies" / "machines"
    engine = load_engine(str(machines / "free-3-levels-bypass.yaml"))
    fronts = [
        pareto_front(layer_problem(gemm(m=6, n=3, k=4), engine, parse_objective("edp"), storage=storage))
        for storage in ("even", "uneven")
    ]
    even, uneven = (
        [(solution.evaluation.energy, solution.evaluation.cycles) for solution in front.solutions]
        for front in fronts
    )
    assert all(front.complete for front in fronts)
    for energy, cycles in even:
        assert any(other <= energy and own <= cycles for other, own in uneven)
