"""Random problems whose runs read each other's results: diamonds, joined batches, equal runs."""

from __future__ import annotations

from dataclasses import replace

from graphs import small_problems
from hypothesis import strategies as st

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, Task

ANY = st.integers(0, 99)


@st.composite
def joined_problems(draw: st.DrawFn, most: int = 6, fetch_memory: bool = False) -> SchedulingProblem:
    """Any acyclic edges between any tasks, spread over several runs in any way, many tasks alike.

    Edges go by an order of the tasks that is not the one in which they stand, so that a run may wait for
    one that stands behind it.
    """
    model = draw(small_problems(most, fetch_memory))
    count = len(model.tasks)
    kinds: list[tuple[Option, ...]] = [task.options for task in model.tasks[: draw(st.integers(1, count))]]
    names = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    tasks = tuple(
        Task(f"net/{name}", "net", f"layer{index}", kinds[draw(ANY) % len(kinds)])
        for index, name in enumerate(names)
    )
    place = draw(st.permutations(range(count)))
    pairs = [(i, j) for i in range(count) for j in range(count) if place[i] < place[j]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * count, unique=True)) if pairs else []
    return replace(model, tasks=tasks, edges=tuple(edges))
