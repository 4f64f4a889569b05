"""Lexicographic optima and Pareto fronts by repeated solves, against plain enumeration."""

from __future__ import annotations

from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import instances

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answers import repeated_solves
from tilewright.solvers.mapping.answers.answer_sets import pareto_front
from tilewright.solvers.mapping.answers.repeated_solves import front_by_repeated_solves, lexicographic
from tilewright.solvers.mapping.exhaustive import minima
from tilewright.workloads.mapping.layer_text import parse_layer

ENERGY, CYCLES, EDP = (parse_objective(name) for name in ("energy", "cycles", "edp"))


def problem_of(objective: Objective) -> LayerProblem:
    operator = parse_layer("gemm:M=6,N=4,K=2")[1]
    return layer_problem(operator, load_engine("eyeriss-168"), objective, factors="perfect")


def least(problem: LayerProblem) -> Fraction | None:
    """The least key by enumeration."""
    return min((candidate.key for candidate in minima(problem)), default=None)


@pytest.mark.parametrize("solver", ["cpsat", "branch"])
@pytest.mark.parametrize("model", ["dmazerunner", "hierarchy"])
@settings(max_examples=effort(4))
@given(data=st.data())
def test_lexicographic_optimum(model: str, solver: str, data: st.DataObject) -> None:
    """The second objective is the least one among all mappings of the least first one."""
    objectives = data.draw(st.sampled_from([(ENERGY, CYCLES), (CYCLES, ENERGY)]))
    problem = data.draw(instances(model, largest=4000, objectives=[objectives[0].name])).problem()
    answer = lexicographic(problem, objectives[1], solver)
    first = least(problem)
    assert answer.first.key == first
    if first is None:
        assert answer.first.status is Status.INFEASIBLE
        assert answer.second is None
        return
    assert answer.optimal
    assert answer.second is not None
    assert answer.second.evaluation is not None
    assert problem.key_of(answer.second.evaluation) == first
    tied = problem.capped(objectives[0].name, first).minimising(objectives[1])
    assert answer.second.key == answer.second.bound == least(tied)


@pytest.mark.parametrize("solver", [pytest.param("cpsat", marks=pytest.mark.slow), "exhaustive"])
def test_front_by_repeated_solves_is_the_front(solver: str) -> None:
    """Every exact solver finds the same front as the search tree at once."""
    problem = problem_of(EDP)
    answers = front_by_repeated_solves(problem, solver)
    expected = pareto_front(problem)
    assert answers.complete
    assert expected.complete
    points = [(solution.evaluation.energy, solution.evaluation.cycles) for solution in answers.solutions]
    assert points == [
        (solution.evaluation.energy, solution.evaluation.cycles) for solution in expected.solutions
    ]
    assert len(points) == 3


def test_front_without_time_is_not_complete() -> None:
    """Where a limit strikes, what was found is returned and nothing more is claimed."""
    answers = front_by_repeated_solves(problem_of(EDP), "branch", Limits(seconds=0.0))
    assert not answers.complete


def test_front_of_nothing_is_complete() -> None:
    """A problem without a mapping has an empty front."""
    problem = problem_of(EDP).capped("cycles", 1)
    assert front_by_repeated_solves(problem, "cpsat") == front_by_repeated_solves(problem, "branch")
    assert front_by_repeated_solves(problem, "branch").complete


@pytest.mark.parametrize(("first", "second"), [(EDP, CYCLES), (ENERGY, EDP), (CYCLES, CYCLES)])
def test_other_pairs_are_refused(first: Objective, second: Objective) -> None:
    """Only energy and cycles leave ties that the other one breaks."""
    with pytest.raises(InputError, match="expected the objectives energy and cycles"):
        lexicographic(problem_of(first), second, "branch")


def test_unproven_first_step_has_no_second() -> None:
    """Among optima that are not known nothing is looked for."""
    answer = lexicographic(problem_of(ENERGY), CYCLES, "branch", Limits(seconds=0.0))
    assert answer.second is None
    assert not answer.optimal


def test_failing_solver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front is not cut short in silence by a solver that dies."""

    def die(*_args: object) -> None:
        raise MemoryError("full")

    monkeypatch.setattr("tilewright.solvers.mapping.branch.Branch.solve", die)
    with pytest.raises(RuntimeError, match="branch: MemoryError: full"):
        repeated_solves.front_by_repeated_solves(problem_of(EDP), "branch")
