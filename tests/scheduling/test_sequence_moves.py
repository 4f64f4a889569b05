"""Moves of one task among the engines' sequences, against longest paths that are computed from nothing."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

from effort import effort
from graphs import problem_of, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, feasible_options
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing, task_graph
from tilewright.solvers.scheduling.herald.walks.sequence_times_kernel import room, times_of, try_move

MOVES = 30


def longest_paths(
    problem: SchedulingProblem, chosen: list[Option], lines: list[list[int]]
) -> tuple[list[int], list[int]] | None:
    """Start and tail of every task, in cycles, by relaxing every arc over and over; ``None`` for a cycle."""
    tasks = range(len(chosen))
    lag = problem.context_cycles
    arcs = [
        (a, b, chosen[a].cycles + (lag if chosen[a].layout != chosen[b].layout else 0))
        for a, b in problem.edges
    ]
    for line in lines:
        arcs += [(a, b, max(chosen[a].cycles, chosen[b].fetch)) for a, b in pairwise(line)]
    start, behind = [chosen[task].fetch for task in tasks], [chosen[task].cycles for task in tasks]
    for _ in range(len(chosen) + 1):
        before = [*start], [*behind]
        for a, b, length in arcs:
            start[b] = max(start[b], start[a] + length)
            behind[a] = max(behind[a], length + behind[b])
        if before == (start, behind):
            return start, [behind[task] - chosen[task].cycles for task in tasks]
    return None


def copied(arrays: tuple[Int64s, ...]) -> list[list[int]]:
    """The values of arrays."""
    return [array.tolist() for array in arrays]


@settings(max_examples=effort(60), deadline=None)
@given(small_problems(most=8, fetch_memory=True), st.randoms(use_true_random=False))
def test_a_move_changes_times_as_computing_all_anew(problem: SchedulingProblem, draw: random.Random) -> None:
    """A move that stays has the longest paths of the new lines; one above its limit leaves no trace."""
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, 0)
    graph = task_graph(problem, options)
    lines = annealing.lines_of(annealing.cheapest())
    times, step = times_of(graph, lines), room(len(options))
    length = max(int(end) for end in times.head) + max(o.cycles for own in options for o in own)
    for _ in range(MOVES):
        task = draw.randrange(len(options))
        option = draw.randrange(len(options[task]))
        rows = [lines.line[e, : lines.held[e]].tolist() for e in range(len(problem.engines))]
        for row in rows:
            if task in row:
                row.remove(task)
        engine = options[task][option].engine
        at = draw.randrange(len(rows[engine]) + 1)
        rows[engine].insert(at, task)
        chosen = [own[int(lines.choice[other])] for other, own in enumerate(options)]
        chosen[task] = options[task][option]
        limit = length * draw.uniform(0.7, 1.5)
        held = [*copied((lines.choice, lines.held, lines.place)), *copied(times)]
        makespan = try_move(graph, lines, task, option, at, limit, times, step)
        expected = longest_paths(problem, chosen, rows)
        reached = None
        if expected is not None:
            reached = max(s + o.cycles for s, o in zip(expected[0], chosen, strict=True))
        if expected is None or reached is None or reached > limit:
            assert makespan == -1
            assert [*copied((lines.choice, lines.held, lines.place)), *copied(times)] == held
            continue
        assert makespan == reached
        assert (times.head.tolist(), times.tail.tolist()) == expected
        assert [lines.line[e, : lines.held[e]].tolist() for e in range(len(problem.engines))] == rows
        length = makespan


def test_a_line_that_waits_for_itself_is_refused() -> None:
    """A task does not go before one whose result it reads, on the same engine."""
    problem = problem_of([[(Option(0, 5, Fraction(1)),), (Option(0, 7, Fraction(1)),)]], 1)
    options = feasible_options(problem)
    annealing = ScheduleAnnealing(problem, options, 0)
    lines = annealing.lines_of(annealing.cheapest())
    graph = task_graph(problem, options)
    times = times_of(graph, lines)
    assert try_move(graph, lines, 1, 0, 0, 1e9, times, room(2)) == -1
    assert lines.line[0, :2].tolist() == [0, 1]
    assert times.head.tolist() == [0, 5]
