"""Tasks in the gaps of a schedule of others, judged by the evaluator."""

from __future__ import annotations

from fractions import Fraction

from effort import effort
from graphs import problem_of, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, feasible_options
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.insertion import inserted


@settings(max_examples=effort(100), deadline=None)
@given(st.data(), small_problems(most=8))
def test_every_task_is_placed_once_and_legally(data: st.DataObject, problem: SchedulingProblem) -> None:
    """Whichever runs are placed first, by whatever options."""
    options = feasible_options(problem)
    first = [task for run in problem.instances.values() if data.draw(st.booleans()) for task in sorted(run)]
    taken = [(task, data.draw(st.integers(0, len(options[task]) - 1))) for task in first]
    placed = inserted(problem, options, taken)
    assert sorted(task for task, _ in placed) == [*range(len(problem.tasks))]
    assert set(taken) <= set(placed)
    annealing = ScheduleAnnealing(problem, options, 0)
    evaluation = evaluate_schedule(problem, annealing.schedule_of(annealing.lines_in_turn(placed)))
    assert not evaluation.violations


def test_gaps_are_used() -> None:
    """A run that takes turns on two engines leaves them idle for as long as another one needs."""
    there, back = (
        tuple(Option(e, 10 if e == own else 99, Fraction(1)) for e in range(2)) for own in range(2)
    )
    problem = problem_of([[there, back, there, back], [back, there, back, there]])
    options = feasible_options(problem)
    taken = [(0, 0), (1, 1), (2, 0), (3, 1)]
    annealing = ScheduleAnnealing(problem, options, 0)
    placed = inserted(problem, options, taken)
    assert annealing.schedule_of(annealing.lines_in_turn(placed)).makespan == 40


def test_nothing_where_a_task_waits_for_one_that_is_placed_later() -> None:
    option = (Option(0, 1, Fraction(1)),)
    problem = problem_of([[option, option]])
    assert inserted(problem, feasible_options(problem), [(1, 0)]) == []
