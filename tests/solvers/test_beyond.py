"""Pareto fronts, k best and all optimal mappings, and clashes, against plain enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from math import prod

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answer_sets import (
    best_mappings,
    clashing_constraints,
    optimal_mappings,
    pareto_front,
)
from tilewright.solvers.mapping.exhaustive import _rows, _tables, values
from tilewright.workloads.mapping.layer_text import parse_layer

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
    found: list[tuple[int, int]] = []
    for selectors in cartesian(*(s.domain for s in problem.space.selectors)):
        energy, cycles, legal = values(problem, tables, rows, selectors)
        found += [(int(e), int(c)) for e, c in zip(energy[legal], cycles[legal], strict=True)]
    return found


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


@pytest.mark.parametrize("text", LAYERS)
def test_best_mappings_are_the_best(text: str) -> None:
    """Under exact order classes the k best keys are the k least keys of all decisions."""
    problem = problem_of(text, "dmazerunner")
    keys = sorted(e * c for e, c in enumerated(problem))
    answers = best_mappings(problem, 7)
    assert answers.complete
    assert [problem.key_of(s.evaluation) for s in answers.solutions] == keys[:7]
    assert len({s.mapping for s in answers.solutions}) == 7


@pytest.mark.parametrize("objective", ["energy", "cycles", "edp"])
def test_all_optimal_mappings(objective: str) -> None:
    """Every optimal decision is reported once, and nothing else."""
    problem = problem_of(LAYERS[0], "dmazerunner", objective)
    a, b = problem.objective.key_powers
    keys = [e**a * c**b for e, c in enumerated(problem)]
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
    found = clashing_constraints(problem)
    assert clash <= set(found)
    assert not (set(constraints) - clash) & set(found)


def test_capacity_clash_names_the_level() -> None:
    """A store that is too small for one element of each tensor is named."""
    engine = small_engine("hierarchy")
    tiny = replace(engine, levels=(*engine.levels[:2], replace(engine.levels[2], capacity=2)))
    problem = layer_problem(parse_layer(LAYERS[0])[1], tiny, parse_objective("edp"))
    assert clashing_constraints(problem) == ("capacity of RF",)


def test_feasible_problem_has_no_clash() -> None:
    """Nothing clashes where a mapping exists."""
    assert clashing_constraints(problem_of(LAYERS[0], "hierarchy")) == ()
