"""Choices of sizes against plain enumeration: proven, and genetic."""

from __future__ import annotations

import random
from itertools import product

import pytest
from tiled_plans import random_network

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.annealing import energy_of, sized_layer
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, evolved, genetic_sizes
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.solvers.scheduling.tiled import sizes
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.solvers.scheduling.tiled.sizes import candidates, chosen_sizes, waits


def small(seed: int) -> TiledProblem:
    """A random network of four layers on small engines."""
    machine = load_tiled_machine("atomic-8x8[engines=3x2,link=8]")
    return TiledProblem(random_network(random.Random(seed), 4), machine, tiled_objective("makespan"))


@pytest.mark.parametrize("seed", range(4))
def test_chosen_sizes_equal_enumeration(seed: int) -> None:
    """The least time and the least spread are those of all combinations of candidates."""
    problem = small(seed)
    menus = candidates(problem, 3, 0.5)
    pairs = {(r.producer, i) for i, u in enumerate(problem.units) for r in u.reads if r.producer is not None}
    choices = list(product(*menus))
    times = [
        sum(pick.time for pick in picks) + sum(waits(picks[p], picks[i]) for p, i in pairs)
        for picks in choices
    ]
    choice = chosen_sizes(problem, menus, "time", Limits())
    assert choice.proven
    assert choice.value == min(times)
    least = sum(min(pick.time for pick in menu) for menu in menus)
    spreads = [
        max(pick.cycles for pick in picks) - min(pick.cycles for pick in picks)
        for picks in choices
        if sum(pick.time for pick in picks) <= int(1.5 * least)
    ]
    choice = chosen_sizes(problem, menus, "spread", Limits(), slack=0.5)
    assert choice.proven
    assert choice.value == min(spreads)


def test_without_time_to_choose_sizes_are_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a plan all the same, and the message says what its sizes are."""

    def late(*_given: object, **_rules: object) -> None:
        raise LimitReachedError("late")

    monkeypatch.setattr(sizes, "chosen_sizes", late)
    result = plan_run(lambda: small(0), "sizes", Limits(30.0)).run()
    assert result.answer is not None
    assert result.answer.dag.tasks == small(0).dag(balanced_sizes(small(0))).tasks
    assert "shares of the layers instead" in result.message


def test_genetic_search_finds_balance() -> None:
    """On a small network the least variance of all combinations is found; sizes fit and follow the seed."""
    problem = small(1)
    layers = [sized_layer(problem, i, 0.5) for i in range(2)]
    best = min(
        energy_of(layers, list(picks), True)
        for picks in product(*(range(len(sizes.cycles)) for sizes in layers))
    )
    evolved_sizes = evolved(
        layers, lambda picks: energy_of(layers, picks, True), random.Random(0), Genetics()
    )
    assert energy_of(layers, evolved_sizes, True) == best
    drawn, other = (genetic_sizes(problem, random.Random(5), Genetics(generations=5)) for _ in range(2))
    assert drawn == other
    assert problem.dag(drawn).needs.max() <= problem.machine.engine.buffer_bytes
