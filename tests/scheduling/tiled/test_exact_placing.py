"""Engines of several rounds together: hops as cuts, and the quadratic problem against enumeration."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from tiled_plans import random_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.solvers.scheduling.tiled.linear import SOLVERS
from tilewright.solvers.scheduling.tiled.placing.positions import hop_positions
from tilewright.solvers.scheduling.tiled.placing.problem import RoundPlacing, flows_of, placing_of
from tilewright.solvers.scheduling.tiled.placing.windows import TaskRounds, least_transfers, place_windows
from tilewright.solvers.scheduling.tiled.running import plan_run


@pytest.mark.parametrize(
    "options", ["engines=4x3", "engines=5x1", "topology=torus,engines=4x3", "topology=torus,engines=5x2"]
)
def test_hops_are_distances_between_positions(options: str) -> None:
    """On meshes, tori and trees the weighted distances between positions are the hops of the routes."""
    for text in (options, options.replace("torus", "htree")):
        machine = load_tiled_machine(f"atomic-8x8[{text}]")
        positions = hop_positions(machine)
        net = topology(machine)
        hops = net.hops.reshape(net.places, net.places)[: net.engines, : net.engines]
        apart = sum(weight * np.abs(place[:, None] - place[None, :]) for weight, place in positions.terms)
        assert (apart == positions.scale * hops).all()


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
        cost += sum(size * int(problem.hops[engine[i], engine[j]]) for i, j, size in problem.pairs.rows())
        least = cost if least is None else min(least, cost)
    assert least is not None
    return least


@pytest.mark.parametrize(
    "solver", [*SOLVERS[:2], *(pytest.param(solver, marks=pytest.mark.slow) for solver in SOLVERS[2:])]
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
        windows = [
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
        (better, window) = windows[-1]
        before = placing_of(problem.machine, flows_of(dag, step), step, list(window.rounds), engine)
        assert window.cost == window.bound == enumerated(before)
        assert (
            transfer_cost(dag, problem.machine, step, engine)
            - transfer_cost(dag, problem.machine, step, better)
            == window.before - window.cost
        )


def transfer_cost(dag: AtomicDag, machine: TiledMachine, step: np.ndarray, engine: np.ndarray) -> int:
    """Bytes times hops of all rounds together, the nearest port included."""
    net = topology(machine)
    return sum(
        size
        * (
            net.distance(int(engine[source]), int(engine[reader]))
            if source >= 0
            else min(net.distance(port, int(engine[reader])) for port in range(net.engines, net.places))
        )
        for reader, source, size in flows_of(dag, step).rows()
    )


def hops_between(machine: TiledMachine, a: int, b: int) -> int:
    """Links between routers on the way, by what the topologies mean."""
    if machine.topology == "htree":
        low, high = 0, machine.width  # a row of engines: halves of halves
        while a != b and high - low > 1:
            middle = low + (high - low) // 2
            if (a < middle) != (b < middle):
                return sum(_depth(low, high, place) for place in (a, b))
            low, high = (low, middle) if a < middle else (middle, high)
        return 0
    around = machine.width if machine.topology == "torus" else 10**6
    return min(abs(a - b), around - abs(a - b))


def _depth(low: int, high: int, place: int) -> int:
    """Edges from a node of the tree over a row of engines down to an engine."""
    depth = 0
    while high - low > 1:
        middle = low + (high - low) // 2
        low, high = (low, middle) if place < middle else (middle, high)
        depth += 1
    return depth


@pytest.mark.parametrize("shape", ["mesh", "torus", "htree"])
def test_exchanged_engines_equal_enumeration(shape: str) -> None:
    """On each topology two rounds exchange engines at the least bytes times hops of all permutations."""
    gained = 0
    for seed in range(4):
        problem, dag = random_problem(random.Random(seed), f"atomic-8x8[engines=4x1,topology={shape}]")
        machine = problem.machine
        engine, step = layer_sequential(dag, machine)
        random.Random(seed).shuffle(order := [0, 1, 2, 3])
        engine = np.array(order, dtype=np.int32)[engine]
        rounds = range(int(step.max()) // 2, int(step.max()) // 2 + 2)
        mine = [np.flatnonzero(step == r) for r in rounds]
        hops = np.array([[hops_between(machine, a, b) for b in range(4)] for a in range(4)])
        flows = [
            (int(dag.block_parent[block]), reader, int(dag.block_bytes[block]))
            for reader in range(dag.tasks)
            for block in dag.reads_of(reader)
            if dag.block_parent[block] >= 0 and {step[reader], step[dag.block_parent[block]]} & {*rounds}
        ]
        made, reader, size = (np.array(column) for column in zip(*flows, strict=True))

        def cost(placed: np.ndarray) -> int:
            return int((size * hops[placed[made], placed[reader]]).sum())  # noqa: B023

        least = cost(engine)
        for places in product(*(permutations(engine[tasks].tolist()) for tasks in mine)):
            tried = engine.copy()
            for tasks, chosen in zip(mine, places, strict=True):
                tried[tasks] = chosen
            least = min(least, cost(tried))
        plan = TaskRounds(machine, flows_of(dag, step, from_dram=False), step)
        placed, window = plan.replaced(rounds, engine, Limits(20, threads=1), exchange=True)
        assert [sorted(placed[tasks]) for tasks in mine] == [sorted(engine[tasks]) for tasks in mine]
        assert (cost(placed), window.cost, window.bound) == (least, least, least)
        gained += cost(engine) - least
    assert gained > 0


@pytest.mark.parametrize("seed", range(3))
def test_flows_follow_blocks_round_by_round(seed: int) -> None:
    """A walk over the rounds that notes who read each block gives the same sources and bytes."""
    problem, dag = random_problem(random.Random(seed), "atomic-2x2")
    step = list_order(dag, problem.machine)[1]
    read_last: dict[int, int] = {}
    bytes_of: Counter[tuple[int, int]] = Counter()
    for r in range(int(step.max()) + 1):
        tasks = np.flatnonzero(step == r).tolist()
        blocks = {(task, block) for task in tasks for block in dag.reads_of(task).tolist()}
        for task, block in blocks:
            made = int(dag.block_parent[block])
            bytes_of[task, made if made >= 0 else read_last.get(block, -1)] += int(dag.block_bytes[block])
        read_last.update((block, task) for task, block in sorted(blocks))
    flows = flows_of(dag, step)
    assert dict(bytes_of) == {(reader, source): size for reader, source, size in flows.rows()}


def test_windows_never_worsen_and_stay_above_the_bound() -> None:
    """Window by window the bytes times hops of a whole plan fall, and never below the sum of free windows."""
    problem, dag = random_problem(random.Random(7), "atomic-8x8[engines=3x2]")
    step = list_order(dag, problem.machine)[1]
    engine = place(dag, problem.machine, step, "matching")
    costs = [transfer_cost(dag, problem.machine, step, engine)]
    bound = least_transfers(dag, problem.machine, step, engine, width=2, limits=Limits(1, threads=1))
    for placed, _ in place_windows(dag, problem.machine, step, engine, width=2, limits=Limits(1, threads=1)):
        costs.append(transfer_cost(dag, problem.machine, step, placed))
        assert len({*zip(step.tolist(), placed.tolist(), strict=True)}) == dag.tasks
    assert costs == sorted(costs, reverse=True)
    assert 0 < bound <= costs[-1]


@pytest.mark.slow
def test_the_method_offers_a_plan_and_tells_what_it_proved() -> None:
    """As users call it, the windows' method ends with a plan that is no worse than where it began."""
    problem, _ = random_problem(random.Random(3), "atomic-8x8[engines=3x2]")
    result = plan_run(lambda: problem, "windows", Limits(20.0, threads=1)).run()
    assert result.answer is not None
    assert "windows proven" in result.message
