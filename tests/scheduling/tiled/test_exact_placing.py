"""Engines of several rounds together: hops as cuts, and the quadratic problem against enumeration."""

from __future__ import annotations

import random
from itertools import permutations, product

import numpy as np
import pytest
from tiled_plans import random_problem

from tilewright.formulation.limits import Limits
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.lists import list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.solvers.scheduling.tiled.linear import SOLVERS
from tilewright.solvers.scheduling.tiled.placing.cuts import hop_cuts
from tilewright.solvers.scheduling.tiled.placing.problem import RoundPlacing, placing_of, round_sources
from tilewright.solvers.scheduling.tiled.placing.windows import least_transfers, place_windows, transfer_cost
from tilewright.solvers.scheduling.tiled.running import plan_run


@pytest.mark.parametrize(
    "options", ["engines=4x3", "engines=5x1", "topology=torus,engines=4x3", "topology=torus,engines=5x2"]
)
def test_hops_are_a_sum_of_cuts(options: str) -> None:
    """On meshes, tori and trees as many cuts separate two engines as the routes have hops."""
    for text in (options, options.replace("torus", "htree")):
        machine = load_tiled_machine(f"atomic-8x8[{text}]")
        scale, cuts = hop_cuts(machine)
        net = topology(machine)
        hops = net.hops.reshape(net.places, net.places)[: net.engines, : net.engines]
        apart = sum(np.abs(cut[:, None].astype(int) - cut[None, :].astype(int)) for cut in cuts)
        assert (apart == scale * hops).all()


def enumerated(problem: RoundPlacing) -> int:
    """Least bytes times hops over all ways to give the tasks of every round engines of their own."""
    rounds = [np.flatnonzero(problem.rounds == r).tolist() for r in np.unique(problem.rounds)]
    ways = [list(permutations(range(problem.single.shape[1]), len(tasks))) for tasks in rounds]
    least = None
    for choice in product(*ways):
        engine = [0] * len(problem.tasks)
        for tasks, places in zip(rounds, choice, strict=True):
            for task, e in zip(tasks, places, strict=True):
                engine[task] = e
        cost = sum(int(problem.single[i, e]) for i, e in enumerate(engine))
        cost += sum(size * int(problem.hops[engine[i], engine[j]]) for i, j, size in problem.pairs)
        least = cost if least is None else min(least, cost)
    assert least is not None
    return least


@pytest.mark.parametrize(
    "solver", [*SOLVERS[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in SOLVERS[2:])]
)
def test_windows_are_proven_as_enumeration_finds_them(solver: str) -> None:
    """Two rounds on 2 x 2 or 3 x 1 engines: every solver proves what enumeration finds."""
    for seed in range(3):
        machine = ["atomic-2x2", "atomic-2x2[topology=torus]", "atomic-8x8[engines=3x1]"][seed]
        problem, dag = random_problem(random.Random(seed), machine)
        step = list_order(dag, problem.machine)[1]
        engine = place(dag, problem.machine, step, "zigzag")
        first = int(step.max()) // 2
        limits = Limits(30, threads=1)
        found = [
            *place_windows(
                dag,
                problem.machine,
                step,
                engine,
                solver=solver,
                width=2,
                limits=limits,
                first=first,
                last=first + 1,
            )
        ]
        (better, window) = found[-1]
        before = placing_of(problem.machine, round_sources(dag, step), step, list(window.rounds), engine)
        assert window.cost == window.bound == enumerated(before)
        assert (
            transfer_cost(dag, problem.machine, step, engine)
            - transfer_cost(dag, problem.machine, step, better)
            == window.before - window.cost
        )


def test_windows_never_worsen_and_stay_above_the_bound() -> None:
    """Window by window the bytes times hops of a whole plan fall, and never below the sum of free windows."""
    problem, dag = random_problem(random.Random(7), "atomic-8x8[engines=3x2]")
    step = list_order(dag, problem.machine)[1]
    engine = place(dag, problem.machine, step, "matching")
    costs = [transfer_cost(dag, problem.machine, step, engine)]
    bound = least_transfers(dag, problem.machine, step, engine, width=2, limits=Limits(1, threads=1))
    for found, _ in place_windows(dag, problem.machine, step, engine, width=2, limits=Limits(1, threads=1)):
        costs.append(transfer_cost(dag, problem.machine, step, found))
        assert len({*zip(step.tolist(), found.tolist(), strict=True)}) == dag.tasks
    assert costs == sorted(costs, reverse=True)
    assert 0 < bound <= costs[-1]


@pytest.mark.slow
def test_the_method_offers_a_plan_and_tells_what_it_proved() -> None:
    """As users call it, the windows' method ends with a plan that is no worse than where it began."""
    problem, _ = random_problem(random.Random(3), "atomic-8x8[engines=3x2]")
    result = plan_run(lambda: problem, "windows", Limits(20.0, threads=1)).run()
    assert result.answer is not None
    assert "windows proven" in result.message
