"""Random small scheduling problems, and their optimum by plain enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    Task,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import make_schedule
from tilewright.formulation.scheduling.herald.timeline import Timeline
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing


def problem_of(
    runs: list[list[tuple[Option, ...]]], engines: int = 2, skips: bool = False, **fields: object
) -> SchedulingProblem:
    """Chains of tasks; with ``skips`` every third task of a run also reads the one before its predecessor."""
    tasks, edges = [], []
    for run, layers in enumerate(runs):
        first = len(tasks)
        tasks += [Task(f"net/{run}", "net", f"layer{i}", own) for i, own in enumerate(layers)]
        indices = range(first, len(tasks))
        edges += list(pairwise(indices))
        if skips:
            edges += [(i - 2, i) for i in indices[2::3]]
    names = tuple(f"engine{i}" for i in range(engines))
    return SchedulingProblem("random", names, tuple(tasks), tuple(edges), **fields)  # type: ignore[arg-type]


def taking_turns() -> SchedulingProblem:
    """Two runs of two tasks, each of which is quick on the other engine."""
    there, back = (
        (Option(0, 10, Fraction(1)), Option(1, 99, Fraction(1))),
        (Option(0, 99, Fraction(1)), Option(1, 10, Fraction(1))),
    )
    return problem_of([[there, back]] * 2)


@st.composite
def small_problems(draw: st.DrawFn, most: int = 6, fetch_memory: bool = False) -> SchedulingProblem:
    """Up to ``most`` tasks on up to 3 engines, with fetches, memory limits and context changes."""
    engines = draw(st.integers(1, 3))
    runs: list[list[tuple[Option, ...]]] = []
    left = draw(st.integers(1, most))
    while left:
        length = draw(st.integers(1, left))
        left -= length
        runs.append([draw(_options(engines, fetch_memory)) for _ in range(length)])
    needs = [min(o.memory_need for o in own) for run in runs for own in run]
    memory = draw(st.one_of(st.none(), st.integers(max(needs), max(needs) + 4)))
    context = draw(st.sampled_from([(0, 0), (1, 0), (2, 3)]))
    return problem_of(
        runs,
        engines,
        draw(st.booleans()),
        memory=memory,
        context_cycles=context[0],
        context_energy=Fraction(context[1]),
    )


@st.composite
def _options(draw: st.DrawFn, engines: int, fetch_memory: bool) -> tuple[Option, ...]:
    where = draw(st.lists(st.integers(0, engines - 1), min_size=1, max_size=engines, unique=True))
    return tuple(
        Option(
            engine=engine,
            cycles=draw(st.integers(1, 4)),
            energy=Fraction(draw(st.integers(1, 9)), draw(st.sampled_from([1, 2]))),
            fetch=draw(st.integers(0, 2)),
            memory=draw(st.integers(0, 4)),
            fetch_memory=draw(st.integers(0, 2)) if fetch_memory else 0,
            layout=f"flow{engine % 2}",
        )
        for engine in where
    )


def random_values(
    problem: SchedulingProblem, objective: ScheduleObjective, draw: random.Random, count: int
) -> Iterator[Fraction]:
    """What schedules of random options and priorities are worth."""
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, 0)
    for _ in range(count):
        schedule = annealing.decode(
            [draw.randrange(len(own)) for own in options], [draw.random() for _ in options]
        )
        evaluation = evaluate_schedule(problem, schedule)
        yield objective.of(evaluation.makespan, evaluation.energy)


def optimum_by_orders(problem: SchedulingProblem, objective: ScheduleObjective) -> Fraction:
    """Every order and every option, each task as early as possible.

    Complete where fetching takes no memory: of some best schedule nothing can move left, and then every task
    starts as early as those before it allow.
    """
    best: list[Fraction] = []

    def extend(done: list[tuple[int, Option]]) -> None:
        timeline = Timeline(problem)
        for task, option in done:
            timeline.append(task, option)
        placed = {task for task, _ in done}
        if len(done) == len(problem.tasks):
            evaluation = evaluate_schedule(problem, timeline.schedule())
            assert not evaluation.violations
            best[:] = [min([*best, objective.of(evaluation.makespan, evaluation.energy)])]
            return
        energy = sum((option.energy for _, option in done), Fraction(0))
        rest = [o for t in range(len(problem.tasks)) if t not in placed for o in problem.tasks[t].options]
        least = objective.of(timeline.makespan, energy + min(o.energy for o in rest))
        if best and least >= best[0]:
            return
        for task in range(len(problem.tasks)):
            if task not in placed and all(before in placed for before in problem.before[task]):
                for option in problem.tasks[task].options:
                    if problem.memory is None or max(option.memory, option.fetch_need) <= problem.memory:
                        extend([*done, (task, option)])

    extend([])
    return best[0]


def optimum_by_clock(problem: SchedulingProblem) -> int:
    """The least makespan over every option and every start cycle, judged by the evaluator alone."""
    horizon = 1
    while True:
        if any(True for _ in _all_within(problem, horizon)):
            return horizon
        horizon += 1


def _all_within(problem: SchedulingProblem, horizon: int) -> Iterator[None]:
    starts: dict[int, int] = {}
    chosen: dict[int, Option] = {}

    def extend(position: int) -> Iterator[None]:
        if position == len(problem.order):
            if not evaluate_schedule(problem, make_schedule(problem, starts, chosen)).violations:
                yield
            return
        task = problem.order[position]
        for option in problem.tasks[task].options:
            earliest = max([option.fetch, *(starts[b] + chosen[b].cycles for b in problem.before[task])])
            for start in range(earliest, horizon - option.cycles + 1):
                clash = any(
                    chosen[other].engine == option.engine
                    and start < starts[other] + chosen[other].cycles
                    and starts[other] < start + option.cycles
                    for other in starts
                )
                if not clash:
                    starts[task], chosen[task] = start, option
                    yield from extend(position + 1)
                    del starts[task], chosen[task]

    yield from extend(0)
