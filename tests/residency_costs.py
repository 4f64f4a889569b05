"""Random problems in which results may stay, and their optimum by enumeration that shares no rule with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st
from joined import joined_problems

from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem


@st.composite
def staying_problems(draw: st.DrawFn, most: int = 3) -> SchedulingProblem:
    """Joined runs with results of some bytes, and energies at DRAM."""
    problem = draw(joined_problems(most))

    def spilling(option: Option) -> Option:
        return replace(
            option,
            cycles=min(option.cycles, 2),
            fetch=min(option.fetch, 1),
            input_spill=Fraction(draw(st.integers(0, 6)), 2),
            output_spill=Fraction(draw(st.integers(0, 6))),
        )

    tasks = tuple(
        replace(task, options=tuple(map(spilling, task.options)), result_bytes=draw(st.integers(0, 5)))
        for task in problem.tasks
    )
    return replace(problem, tasks=tasks, edges=tuple(dict.fromkeys(problem.edges)))


def optimum_by_cycles(problem: SchedulingProblem, objective: ScheduleObjective) -> Fraction:
    """Every option, start cycle and set of kept results; rules and costs are counted cycle by cycle here."""
    tasks = range(len(problem.tasks))
    best: Fraction | None = None
    for chosen in product(*(task.options for task in problem.tasks)):
        horizon = sum(o.cycles + o.fetch for o in chosen) + problem.context_cycles * len(problem.edges)
        for starts in _starts(problem, chosen, horizon):
            makespan = max(starts[t] + chosen[t].cycles for t in tasks)
            for kept in _subsets([e for e in problem.edges if problem.tasks[e[0]].result_bytes]):
                if not _has_room(problem, chosen, starts, kept, makespan):
                    continue
                energy = Fraction(0)
                for task in tasks:
                    energy += chosen[task].energy
                    reads = [edge for edge in problem.edges if edge[1] == task]
                    writes = [edge for edge in problem.edges if edge[0] == task]
                    energy += 0 if reads and all(e in kept for e in reads) else chosen[task].input_spill
                    energy += 0 if writes and all(e in kept for e in writes) else chosen[task].output_spill
                for first, second in problem.edges:
                    if chosen[first].layout != chosen[second].layout:
                        energy += problem.context_energy
                value = objective.of(makespan, energy)
                best = value if best is None else min(best, value)
    assert best is not None
    return best


def _subsets(edges: list[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
    for bits in product((False, True), repeat=len(edges)):
        yield frozenset(edge for edge, bit in zip(edges, bits, strict=True) if bit)


def _starts(
    problem: SchedulingProblem, chosen: tuple[Option, ...], horizon: int
) -> Iterator[tuple[int, ...]]:
    tasks = range(len(chosen))
    for starts in product(*(range(o.fetch, horizon - o.cycles + 1) for o in chosen)):
        legal = all(
            starts[second]
            >= starts[first]
            + chosen[first].cycles
            + (problem.context_cycles if chosen[first].layout != chosen[second].layout else 0)
            for first, second in problem.edges
        )
        for a in tasks:
            for b in tasks:
                if a != b and chosen[a].engine == chosen[b].engine and starts[a] <= starts[b]:
                    legal = legal and starts[b] >= starts[a] + max(chosen[a].cycles, chosen[b].fetch)
        if legal:
            yield starts


def _has_room(
    problem: SchedulingProblem,
    chosen: tuple[Option, ...],
    starts: tuple[int, ...],
    kept: frozenset[tuple[int, int]],
    makespan: int,
) -> bool:
    if problem.memory is None:
        return True
    ends = [start + option.cycles for start, option in zip(starts, chosen, strict=True)]
    for cycle in range(makespan):
        used = 0
        for task, option in enumerate(chosen):
            used += option.memory if starts[task] <= cycle < ends[task] else 0
            used += option.fetch_memory if starts[task] - option.fetch <= cycle < starts[task] else 0
            last = max((ends[second] for first, second in kept if first == task), default=0)
            used += problem.tasks[task].result_bytes if starts[task] <= cycle < last else 0
        if used > problem.memory:
            return False
    return True
