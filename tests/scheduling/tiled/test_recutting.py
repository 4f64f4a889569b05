"""Climbing over cuts of small networks: moves stay within layers, and no climb ends worse than it began."""

from __future__ import annotations

import random
from dataclasses import astuple

import pytest
from effort import effort
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import recutting
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.recutting import Choice, Climb, Climber, recut, varied
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.regions import regions, whole
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.starts import Start


def search_of(seed: int, limits: Limits | None = None, objective: str = "ed2p") -> TiledSearch:
    """A search for plans of a random network of four layers and two samples."""
    problem = TiledProblem(
        random_network(random.Random(seed), 4),
        load_tiled_machine("atomic-2x2[link=4]"),
        tiled_objective(objective),
        batch=2,
    )
    return TiledSearch(TiledGoal(problem), limits or Limits(), exact=False)


def climbed(search: TiledSearch, start: Start, seed: int, most: int, within: Limits | None = None) -> Start:
    """The best start after so many moves."""
    climb = Climb(start, Stages(search, "test"), random.Random(seed))
    climb.go_on(within or search.limits, most)
    return climb.best


def start_of(search: TiledSearch, region: int = 0) -> Start:
    """Balanced sizes on a region of the machine, the largest first."""
    problem = search.problem.problem
    where, sizes = regions(problem.machine)[region], balanced_sizes(problem)
    judged = Stages(search, "test", region=where).of_sizes(sizes, "waves", "zigzag", "test")
    assert judged is not None
    return Start(judged, sizes, "waves", "zigzag", where, (1.0,))


@pytest.mark.parametrize("seed", range(effort(4)))
def test_moves_stay_within_their_layers(seed: int) -> None:
    """However many follow each other, sizes lie within layers; moves change two layers, or all of a run."""
    problem, numbers = search_of(seed).problem.problem, random.Random(seed)
    sizes = balanced_sizes(problem)
    changes = set()
    for _ in range(60):
        changed = recut(problem, sizes, numbers)
        changes.add(sum(new != old for new, old in zip(changed, sizes, strict=True)))
        for size, unit in zip(changed, problem.units, strict=True):
            assert min(astuple(size)) >= 1
            assert size.samples <= problem.batch
            if unit.layer.operator.is_mac:
                assert size.inputs <= max(shape_of(unit.layer.operator).parts, 1)
        sizes = changed
    assert {0, 1, 2, len(sizes)} <= changes


@pytest.mark.parametrize("seed", range(effort(2)))
def test_a_climb_ends_no_worse_than_it_began(seed: int) -> None:
    """Its plan is that of its sizes, order and region, as the evaluator has it."""
    search = search_of(seed)
    start = start_of(search)
    end = climbed(search, start, seed, 40)
    problem, (key, answer) = search.problem.problem, end.judged
    assert key <= start.judged[0]
    assert key == search.problem.judge(answer).key
    assert answer.dag.tasks == problem.dag(end.sizes).tasks


def test_a_start_with_homes_on_the_whole_machine_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both starts have moves, until half of what may fail in a row has; then only the better one has."""
    search = search_of(1)
    moved: list[str] = []

    def fails(climber: Climber, *_: object) -> None:
        assert (climber.start.homes is None) == (climber.start.region.name == small.region.name)
        moved.append(climber.start.region.name)

    monkeypatch.setattr(recutting, "varied", fails)
    monkeypatch.setattr(recutting, "FRUITLESS", 20)
    machine = search.problem.problem.machine
    small = start_of(search, region=len(regions(machine)) - 1)
    Climb(small, Stages(search, "test"), random.Random(1)).go_on(search.limits, 1000)
    assert set(moved[:10]) == {small.region.name, whole(machine).name}
    assert len(set(moved[12:])) == 1
    assert len(moved) == 21


@pytest.mark.parametrize("seed", range(effort(2)))
def test_a_climb_makes_no_plan_twice(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Many moves lead back to what was tried, and none of these would gain."""
    made: list[object] = []
    again: list[Climber] = []
    rough = Stages.rough

    def noted(self: Stages, dag: AtomicDag, order: str, mapping: str, source: str) -> Judged:
        made.append((tuple(self.along), dag.tilings, order, mapping, self.homes))
        return rough(self, dag, order, mapping, source)

    def checked(
        climber: Climber, stages: Stages, numbers: random.Random, source: str, tried: set[Choice]
    ) -> Climber | None:
        drawn, known, plans = numbers.getstate(), len(tried), len(made)
        moved = varied(climber, stages, numbers, source, tried)
        if len(tried) == known:
            assert moved is None
            assert len(made) == plans
            numbers.setstate(drawn)
            without_memory = varied(climber, stages, numbers, source, set())
            if without_memory is not None:
                assert without_memory.start.judged[0] >= climber.start.judged[0]
                again.append(without_memory)
        return moved

    monkeypatch.setattr(Stages, "rough", noted)
    monkeypatch.setattr(recutting, "varied", checked)
    search = search_of(seed, objective="makespan")
    climbed(search, start_of(search), seed, 160)
    assert again


def test_a_climb_ends_with_its_limits() -> None:
    """No move is made without time, and the start is what is left."""
    search = search_of(2)
    start = start_of(search)
    assert climbed(search, start, 0, 40, Limits(0.0)) is start


def test_moves_that_need_too_many_atoms_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of(3)
    climber = Climber(start := start_of(search), start.judged[0])
    monkeypatch.setattr(recutting, "MOST_ATOMS", 0)
    assert all(
        varied(climber, Stages(search, "test"), random.Random(seed), "test", set()) is None
        for seed in range(5)
    )


def test_plans_that_are_too_bad_are_not_smoothed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a plan is offered as it was completed, and is no start."""
    search = search_of(4)
    climber = Climber(start := start_of(search), start.judged[0] / 1000)
    smoothed: list[object] = []
    monkeypatch.setattr(Stages, "smoothed", lambda self, judged, source: smoothed.append(judged))
    moved = [varied(climber, Stages(search, "test"), random.Random(seed), "test", set()) for seed in range(8)]
    assert not any(moved)
    assert not smoothed


def test_the_best_start_of_few_moves_is_reproduced() -> None:
    """The same numbers lead to the same sizes."""
    ends = []
    for _ in range(2):
        search = search_of(5)
        first = AtomicDataflow().starts(search, Stages(search, "test")).go_on()
        assert first is not None
        ends.append(climbed(search, first, 7, 12))
    assert ends[0].sizes == ends[1].sizes
    assert ends[0].judged[0] == ends[1].judged[0]


def test_a_climb_that_was_left_goes_on_where_it_was() -> None:
    """Moves in several goes lead to the plan of as many in a row."""
    ends = []
    for goes in ((24,), (8, 8, 8)):
        search = search_of(5)
        climb = Climb(start_of(search), Stages(search, "test"), random.Random(7))
        for most in goes:
            climb.go_on(search.limits, most)
        ends.append(climb.best)
    assert ends[0].sizes == ends[1].sizes
    assert ends[0].judged[0] == ends[1].judged[0]
