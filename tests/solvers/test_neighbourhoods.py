"""Neighbourhoods of the best mapping: what is near it is found, and nothing else is claimed."""

from __future__ import annotations

from itertools import combinations

import pytest
from effort import effort
from random_machines import loose_problem
from stops import AfterChecks

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.solvers.mapping.first_mapping import offer_one_mapping
from tilewright.solvers.mapping.patterns import neighbourhoods
from tilewright.solvers.mapping.patterns.neighbourhoods import Neighbourhoods
from tilewright.solvers.mapping.patterns.pattern_machines import (
    levels_of,
    machine_of,
    machines_stand_alone,
    stores_of,
)
from tilewright.solvers.mapping.presolve.encode import tile_sizes
from tilewright.solvers.mapping.solve import solve

MOST = 30_000
"""Mappings that are enumerated in a neighbourhood."""
CHECKS = 100_000
"""More looks at limits than any search here needs."""


def begun(problem: LayerProblem) -> LayerSearch:
    """A search that knows some mapping, and ends though its steps do not."""
    search = LayerSearch(problem, Limits(threads=1).stopping(AfterChecks(CHECKS)))
    offer_one_mapping(search)
    return search


def near(search: LayerSearch) -> list[LayerProblem]:
    """What the best mapping has near it: two groups of its levels, or of one more, take any tiles."""
    problem, mapping = search.problem, search.answer
    assert mapping is not None
    stored = levels_of(stores_of(problem, mapping))
    parts = []
    for further in [(), *((level,) for level in loose_levels(problem.space.nest) if level not in stored)]:
        part = problem.on(machine_of(problem.engine, sorted((*stored, *further))))
        sizes = tile_sizes(part, mapping)
        names = [group.name for group in part.space.groups if len(group) > 1]
        for free in combinations(names, min(2, len(names))):
            kept = {
                variable: frozenset({sizes[variable]})
                for group in part.space.groups
                if group.name not in free
                for variable in group.variables
            }
            parts.append(part.having(kept))
    return parts


@pytest.mark.parametrize("seed", range(effort(6)))
def test_the_last_mapping_is_the_best_of_its_neighbourhoods(seed: int) -> None:
    """Once no step is left, plain enumeration finds nothing better near the best mapping."""
    problem = loose_problem(seed)
    search = begun(problem)
    if search.key is None or not machines_stand_alone(problem):
        return
    first = search.key
    for _ in Neighbourhoods(search, "test").steps():
        pass
    assert search.key is not None
    assert search.key <= first
    for part in near(search):
        if part.space.size > MOST:
            continue
        result = solve(part, "exhaustive", Limits(threads=1))
        assert result.key is None or result.key >= search.key


def test_steps_go_on_where_the_search_knows_a_better_mapping() -> None:
    """Nothing is searched twice, and a better mapping from elsewhere has neighbourhoods of its own."""
    problem = loose_problem(11)
    search = begun(problem)
    around = Neighbourhoods(search, "test")
    assert [*around.steps()]
    assert not [*around.steps()]
    best = solve(problem, "branch", Limits(threads=1))
    assert best.answer is not None
    assert best.key is not None
    assert search.key is not None
    assert best.key < search.key
    search.offer(best.answer, "test", Origin.GIVEN)
    assert [*around.steps()]
    assert search.key == best.key


@pytest.mark.parametrize("seed", [4, 15, 36])
def test_nothing_is_searched_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Better mappings share neighbourhoods with those before them, and the search ends by itself."""
    search = begun(loose_problem(seed))
    searched: list[object] = []
    search_with = neighbourhoods._Machine.search_with

    def seen(machine: neighbourhoods._Machine, kept: dict[Variable, int]) -> None:
        levels = tuple(level.name for level in machine.problem.engine.levels)
        searched.append((levels, tuple(kept.items())))
        search_with(machine, kept)

    monkeypatch.setattr(neighbourhoods._Machine, "search_with", seen)
    first = search.answer
    assert [*Neighbourhoods(search, "test").steps()]
    assert search.answer is not first
    assert not search.done
    assert len(searched) == len(set(searched))


def test_machines_of_very_many_tiles_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tables of theirs are made."""
    search = begun(loose_problem(5))
    monkeypatch.setattr(neighbourhoods, "_MOST", 0)
    assert not [*Neighbourhoods(search, "test").steps()]
    assert search.tally.trees == 0
