"""The default's members: starts that go on, and yields by the search's own clock."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tiled_plans import random_network

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
from tilewright.heuristics.scheduling.tiled.layouts import method
from tilewright.heuristics.scheduling.tiled.layouts.method import price_of
from tilewright.heuristics.scheduling.tiled.recutting import Climb
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.starts import Start, Starts
from tilewright.solvers.scheduling.tiled import auto
from tilewright.solvers.scheduling.tiled.lns import PART, Neighbourhoods
from tilewright.solvers.scheduling.tiled.placing.windows import TaskRounds
from tilewright.solvers.scheduling.tiled.running import plan_run


def search_on(objective: str, limits: Limits) -> TiledSearch:
    """A search for plans of a random network of five layers."""
    machine = load_tiled_machine("atomic-2x2")
    problem = TiledProblem(random_network(random.Random(3)), machine, tiled_objective(objective))
    return TiledSearch(TiledGoal(problem), limits, exact=False)


@pytest.mark.parametrize("objective", ["edp", "makespan"])
def test_starts_go_on_where_they_were_left(objective: str) -> None:
    """One plan at a time, starts come to the very plan that they come to in one go, and end."""
    searches = [search_on(objective, Limits()) for _ in range(3)]
    atomic = AtomicDataflow(order="waves", mapping="zigzag")
    whole, parts, none = (atomic.starts(search, Stages(search, "test")) for search in searches)
    assert none.best(Limits(0.0)) is None
    assert not none.ended
    tried, best = 0, whole.best()
    while not parts.ended:
        before, found = parts.leader, parts.go_on()
        assert found is not None
        assert before is None or found.judged[0] <= before.judged[0]
        tried += 1
    assert tried > 5
    assert best is not None
    assert parts.leader is not None
    assert parts.leader.judged[0] == best.judged[0] == searches[0].key
    assert (parts.leader.order, parts.leader.mapping, parts.leader.sizes) == (
        best.order,
        best.mapping,
        best.sizes,
    )


def test_starts_that_had_to_wait_are_tried_among_neighbourhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time for atoms allows one plan, `auto` tries further starts later."""
    honest, tried = Starts.go_on, list[Start | None]()

    def go_on(self: Starts) -> Start | None:
        tried.append(honest(self))
        return tried[-1]

    def best(self: Starts, within: Limits | None = None) -> Start | None:
        return self.go_on()

    monkeypatch.setattr(Starts, "go_on", go_on)
    monkeypatch.setattr(Starts, "best", best)
    monkeypatch.setattr(auto, "TREES", ())
    monkeypatch.setattr(auto, "LAYOUTS", auto._Part(0.0, 0.0, -1.0))  # never enough time
    problem = search_on("edp", Limits()).problem.problem
    result = plan_run(lambda: problem, "auto[steps=8]", Limits(60.0)).run()
    keys = [start.judged[0] for start in tried if start is not None]
    assert len(keys) >= 2
    assert keys == sorted(keys, reverse=True)
    assert result.key is not None
    assert result.key <= keys[-1]


def test_atoms_go_on_where_layouts_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that layouts leave is the further starts', and the reason is kept."""
    went_on: list[str] = []

    def gives_up(*_: object) -> None:
        raise LimitReachedError("too little time")

    monkeypatch.setattr(auto, "started", gives_up)
    monkeypatch.setattr(auto._Portfolio, "go_on_with_atoms", lambda _: went_on.append("atoms"))
    portfolio = auto._Portfolio(search_on("edp", Limits()), room=0.5)
    portfolio.attempt(portfolio.begin_layouts)
    assert went_on == ["atoms"]
    assert [str(failure) for failure in portfolio.failures] == ["too little time"]


@pytest.mark.parametrize("gains", [(0, 1, 3, 0), (4, 2, 0, 0), (0, 0, 0, 9)])
def test_layouts_are_compared_once_they_are_smoothed(
    gains: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first plans three are smoothed, and the two that are best then go on, in that order."""
    search = search_on("edp", Limits())
    starts = list(method.started(search, Stages(search, "test"), 0.5))
    key, like = search.key, starts[0]
    assert key is not None
    # keys of 100, 101, ... percent, less what smoothing gains
    first = [key * (100 + i) / 100 for i in range(4)]
    starts = [replace(like, judged=(first[i], replace(like.judged[1]))) for i in range(4)]
    smoothed: list[int] = []

    def settle(near: Neighbourhoods, calls: int | None = None) -> None:
        assert calls == auto.FEW
        smoothed.append(first.index(near.best[0]))
        near.best = near.best[0] - key * gains[smoothed[-1]] / 100, near.best[1]

    monkeypatch.setattr(auto, "started", lambda *_: starts)
    monkeypatch.setattr(Neighbourhoods, "settle", settle)
    portfolio = auto._Portfolio(search, room=0.5)
    portfolio.begin_layouts()
    assert smoothed == [0, 1, 2]
    after = sorted(first[i] - key * gains[i] / 100 for i in smoothed)
    assert [site.near.best[0] for site in portfolio.sites] == after[:2]


def test_other_layouts_are_smoothed_among_neighbourhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them twice, and further where it comes close; the best of all goes on."""
    search = search_on("edp", Limits())
    like = method.started(search, Stages(search, "test"), 0.5)[0]
    key = search.key
    assert key is not None
    percent = [100, 101, 102, 110, 120, 130]
    # what two calls of smoothing gain, and all others
    gains = {110: (8, 5), 120: (8, 50), 130: (30, 2)}
    starts = [replace(like, judged=(key * size / 100, replace(like.judged[1]))) for size in percent]
    calls: list[tuple[int, int | None]] = []

    def settle(near: Neighbourhoods, most: int | None = None) -> None:
        size = next(n for n in percent if near.best[1] is starts[percent.index(n)].judged[1])
        calls.append((size, most))
        few, others = gains.get(size, (0, 0))
        near.best = near.best[0] - key * (others if most is None else few) / 100, near.best[1]

    monkeypatch.setattr(auto, "started", lambda *_: starts)
    monkeypatch.setattr(Neighbourhoods, "settle", settle)
    monkeypatch.setattr(Neighbourhoods, "visit", lambda _: None)
    portfolio = auto._Portfolio(search, room=0.5)
    portfolio.begin_layouts()
    assert [start.judged[0] * 100 / key for start in portfolio.laid] == [110, 120, 130]
    calls.clear()
    portfolio.visit(100)
    few = auto.FEW
    assert calls[-5:] == [(110, few), (110, None), (120, few), (130, few), (130, None)]
    assert min(site.near.best[0] for site in portfolio.sites) == key * 97 / 100


def test_moves_in_cuts_go_on_among_neighbourhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """First as many as there may be, until many gain nothing, then some at a time."""
    moves: list[int] = []
    monkeypatch.setattr(Climb, "go_on", lambda _, within, most: moves.append(most))
    monkeypatch.setattr(Starts, "best", lambda self, within=None: self.go_on())
    for quick in ("settle", "visit"):
        monkeypatch.setattr(Neighbourhoods, quick, lambda *_: None)
    portfolio = auto._Portfolio(search_on("edp", Limits()), room=0.5, steps=1000)
    portfolio.begin_atoms()
    portfolio.climb_cuts()
    assert moves == [1000]
    assert portfolio.starts is not None
    portfolio.starts.ended = True
    portfolio.visit(20)
    assert set(moves[1:]) == {auto.MOVES}


@pytest.mark.parametrize(
    ("objective", "most", "streams"), [("edp", 4000, True), ("edp", 0, False), ("energy", 0, True)]
)
def test_streams_begin_for_energies_and_quick_plans(
    objective: str, most: int, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where cycles count, too, plans of atoms must be small; streams do not keep layouts away then."""
    begun = list[str]()

    def give_up(kind: str) -> None:
        begun.append(kind)
        raise LimitReachedError(kind)

    monkeypatch.setattr(auto, "QUICK", most)
    monkeypatch.setattr(auto, "TREES", ())
    monkeypatch.setattr(auto.streams, "started", lambda *given: give_up("streams"))
    monkeypatch.setattr(auto, "started", lambda *given: give_up("layouts"))
    problem = search_on(objective, Limits()).problem.problem
    plan_run(lambda: problem, "auto[steps=1]", Limits(60.0)).run()
    assert ("streams" in begun) == streams
    assert "layouts" in begun


def test_yields_are_seconds_of_the_clock_of_the_search() -> None:
    """Under a clock that counts how often it is read, what was spent is a whole number."""
    reads = [0]

    def clock() -> float:
        reads[0] += 1
        return float(reads[0])

    search = search_on("edp", Limits(clock=clock))
    stages = Stages(search, "test")
    start = AtomicDataflow().starts(search, stages).go_on()
    assert start is not None
    near = Neighbourhoods(stages, start)
    for _ in range(4):
        near.visit()
    spent = [way.spent for way in near.yields.values()]
    assert sum(spent) >= 4
    assert all(seconds == int(seconds) for seconds in spent)


def test_copies_count_where_only_cycles_do() -> None:
    """For a makespan layouts weigh energy: a cycle is worth more than a mean one, less than all copies."""
    search = search_on("makespan", Limits())
    LayerSequential(room=0.5).offer(search, "test")
    assert search.evaluation is not None
    mean = search.evaluation.energy.total / search.evaluation.cycles
    assert 1 < price_of(search) / mean < 50


def test_proofs_of_places_leave_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window's proof has a small part of the time left, no more than its own limit where that is much."""
    granted: list[float] = []

    def replaced(self: TaskRounds, rounds: object, engine: object, limits: Limits, **_: object) -> object:
        assert limits.remaining is not None
        granted.append(limits.remaining)
        return engine, None

    monkeypatch.setattr(TaskRounds, "replaced", replaced)
    for seconds in (20.0, 4000.0):
        search = search_on("edp", Limits(seconds))
        LayerSequential().offer(search)
        assert search.key is not None
        assert search.answer is not None
        near = Neighbourhoods(Stages(search, "test"), (search.key, search.answer))
        assert near._other_places() is None
    assert 0.0 < granted[0] <= 20.0 * PART
    assert 3.5 < granted[1] <= 4.0
