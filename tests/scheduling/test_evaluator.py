"""The evaluator of schedules: figures, and every kind of violation by name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from graphs import problem_of

from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, Task
from tilewright.formulation.scheduling.herald.schedule import Schedule, make_schedule
from tilewright.foundation.errors import InputError

FIRST = Option(0, 4, Fraction(10), fetch=1, memory=3, fetch_memory=2, layout="a")
SECOND = Option(1, 5, Fraction(7), memory=4, layout="b")
THIRD = Option(0, 2, Fraction(1), fetch=3, memory=1, fetch_memory=1, layout="a")


def example(**fields: object) -> SchedulingProblem:
    """A run of two layers and a run of one."""
    return problem_of([[(FIRST,), (SECOND,)], [(THIRD,)]], **fields)


def placed(problem: SchedulingProblem, *starts: int) -> Schedule:
    options = {0: FIRST, 1: SECOND, 2: THIRD}
    return make_schedule(problem, dict(enumerate(starts)), options)


def test_figures_of_a_legal_schedule() -> None:
    """Makespan, energy, utilization and occupancy are those counted by hand."""
    evaluation = evaluate_schedule(problem := example(memory=8), placed(problem, 1, 5, 5))
    assert evaluation.violations == ()
    assert (evaluation.makespan, evaluation.energy, evaluation.edp) == (10, 18, 180)
    assert evaluation.utilization == (0.6, 0.5)
    assert evaluation.occupancy == ((0, 2), (1, 3), (2, 4), (5, 5), (7, 4), (10, 0))
    assert evaluation.engine_energy == (11, 7)


def test_context_changes_are_priced() -> None:
    """An edge between layouts costs its energy and its cycles."""
    problem = example(context_cycles=2, context_energy=Fraction(3))
    assert evaluate_schedule(problem, placed(problem, 1, 7, 5)).energy == 21
    assert evaluate_schedule(problem, placed(problem, 1, 6, 5)).violations == (
        "net/0:layer1 starts at 6, before its input net/0:layer0 ends at 5 and a context change of 2",
    )


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ((1, 4, 5), "net/0:layer1 starts at 4, before its input net/0:layer0 ends at 5"),
        ((1, 5, 4), "engine0: net/1:layer0 starts before net/0:layer0 has ended"),
        ((0, 4, 4), "net/0:layer0 starts at 0, its fetch alone takes 1"),
        ((5, 9, 3), "engine0: net/0:layer0 is fetched before net/1:layer0 has begun"),
    ],
)
def test_violations_are_named(starts: tuple[int, ...], words: str) -> None:
    """Each broken rule names the tasks and the engine."""
    problem = example()
    if words.endswith("begun"):
        problem = problem_of([[(replace(FIRST, fetch=4),), (SECOND,)], [(THIRD,)]])
        options = {0: replace(FIRST, fetch=4), 1: SECOND, 2: THIRD}
        schedule = make_schedule(problem, {0: 6, 1: 10, 2: 3}, options)
    else:
        schedule = placed(problem, *starts)
    assert any(words in violation for violation in evaluate_schedule(problem, schedule).violations)


def test_memory_violation_names_the_cycle() -> None:
    """The first cycle at which the shared memory overflows is told."""
    problem = example(memory=4)
    evaluation = evaluate_schedule(problem, placed(problem, 1, 5, 5))
    assert evaluation.violations == ("shared memory: 5 bytes in use from cycle 5, it has 4",)


def test_every_task_is_due_once_with_an_option_of_its_own() -> None:
    """Left-out, doubled and foreign placements are told."""
    problem = example()
    schedule = placed(problem, 1, 5, 5)
    kept = tuple(p for p in schedule.placements if p.task != 2)
    short = evaluate_schedule(problem, Schedule(kept))
    assert "net/1:layer0 is scheduled 0 times, expected once" in short.violations
    foreign = Schedule((*kept, *(replace(p, option=SECOND) for p in schedule.placements if p.task == 2)))
    assert any("cannot run as scheduled" in text for text in evaluate_schedule(problem, foreign).violations)


def test_dependency_cycles_are_refused() -> None:
    """The error names the tasks of the cycle."""
    tasks = (Task("a", "a", "x", (FIRST,)), Task("a", "a", "y", (FIRST,)))
    with pytest.raises(InputError, match=r"in a cycle: a:x -> a:y"):
        SchedulingProblem("loop", ("e",), tasks, ((0, 1), (1, 0)))
