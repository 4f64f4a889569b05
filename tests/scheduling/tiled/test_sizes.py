"""Choices of sizes against plain enumeration: proven, genetic, and neighbourhoods in places."""

from __future__ import annotations

import random
from itertools import permutations, product

import numpy as np
import pytest
from tiled_plans import random_network, random_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.annealing import energy_of, sized_layer
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, evolved, genetic_sizes
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.solvers.scheduling.tiled import sizes
from tilewright.solvers.scheduling.tiled.lns import replaced
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
        sum(one.time for one in picks) + sum(waits(picks[p], picks[i]) for p, i in pairs) for picks in choices
    ]
    found = chosen_sizes(problem, menus, "time", Limits())
    assert found is not None
    assert found.proven
    assert found.value == min(times)
    least = sum(min(one.time for one in menu) for menu in menus)
    spreads = [
        max(one.cycles for one in picks) - min(one.cycles for one in picks)
        for picks in choices
        if sum(one.time for one in picks) <= int(1.5 * least)
    ]
    found = chosen_sizes(problem, menus, "spread", Limits(), slack=0.5)
    assert found is not None
    assert found.proven
    assert found.value == min(spreads)


def test_without_time_to_choose_sizes_are_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a plan all the same, and the message says what its sizes are."""
    monkeypatch.setattr(sizes, "chosen_sizes", lambda *given, **rules: None)
    result = plan_run(lambda: small(0), "sizes", Limits(30.0)).run()
    assert result.answer is not None
    assert result.answer.dag.tasks == small(0).dag(balanced_sizes(small(0))).tasks
    assert "shares of the layers instead" in result.message


def test_genetic_search_finds_balance() -> None:
    """On a small network the least variance of all combinations is found; sizes fit and follow the seed."""
    problem = small(1)
    layers = [sized_layer(problem, i, 0.5) for i in range(2)]
    best = min(
        energy_of(layers, list(picks), True) for picks in product(*(range(len(one.cycles)) for one in layers))
    )
    found = evolved(layers, lambda picks: energy_of(layers, picks, True), random.Random(0), Genetics())
    assert energy_of(layers, found, True) == best
    one, other = (genetic_sizes(problem, random.Random(5), Genetics(generations=5)) for _ in range(2))
    assert one == other
    assert problem.dag(one).needs.max() <= problem.machine.engine.buffer_bytes


def bytes_times_hops(dag: AtomicDag, machine: TiledMachine, engine: np.ndarray, tasks: set[int]) -> int:
    """Over all reads of results by or from some tasks, distances on the mesh."""
    total = 0
    for reader in range(dag.tasks):
        for block in dag.reads_of(reader):
            made = int(dag.block_parent[block])
            if made >= 0 and (made in tasks or reader in tasks):
                a, b = (machine.position(int(engine[one])) for one in (made, reader))
                total += int(dag.block_bytes[block]) * (abs(a[0] - b[0]) + abs(a[1] - b[1]))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_places_of_a_window_equal_enumeration(seed: int) -> None:
    """Two rounds on 2 x 2 engines are placed at the least bytes times hops of all pairs of permutations."""
    problem, dag = random_problem(random.Random(seed), "atomic-2x2")
    machine = problem.machine
    engine, step = layer_sequential(dag, machine)
    rounds = range(int(step.max()) // 2, int(step.max()) // 2 + 2)
    mine = [np.flatnonzero(step == r) for r in rounds]
    found = replaced(dag, machine, engine, step, rounds, Limits(20))
    assert found is not None
    assert found[1]
    tasks = {int(t) for one in mine for t in one}
    least = None
    for places in product(*(permutations(engine[one].tolist()) for one in mine)):
        tried = engine.copy()
        for one, place in zip(mine, places, strict=True):
            tried[one] = place
        cost = bytes_times_hops(dag, machine, tried, tasks)
        least = cost if least is None else min(least, cost)
    assert bytes_times_hops(dag, machine, found[0], tasks) == least
