"""Bounds never exceed what a legal plan takes, and attain what they should on problems that a hand
can solve."""

from __future__ import annotations

import random

import pytest
from effort import effort
from tiled_plans import random_plan, random_problem

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.solvers.scheduling.tiled.ancestors import fetch_rate, heads_and_rests
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


@pytest.mark.parametrize("seed", range(effort(12)))
def test_no_plan_undercuts_a_bound(seed: int) -> None:
    """Random plans on random machines take at least every bound, in cycles and energy."""
    rng = random.Random(seed)
    machine = rng.choice(
        [
            "atomic-2x2[link=64,dram=512]",
            "atomic-2x2[dram=2]",
            "atomic-8x8[engines=3x2,dataflow=yx]",
            "set-edge-4x4",
        ]
    )
    problem, dag = random_problem(rng, machine)
    fixed, free = dag_bounds(dag, problem.machine), size_bounds(problem)
    for _ in range(4):
        result = problem.evaluate(dag, random_plan(rng, problem, dag))
        assert result.cycles >= fixed.cycles
        assert result.cycles >= free.cycles
        assert result.energy.total >= fixed.energy * (1 - 1e-12)
        assert result.energy.total >= free.energy * (1 - 1e-12)
    assert free.work <= fixed.work


def plain_heads(dag: AtomicDag, machine: TiledMachine) -> list[int]:
    """Per task the least cycle of its beginning, from its ancestors as plain sets, each threshold tried."""
    starts, producers = dag.edges
    rate, chip = fetch_rate(machine), machine.on_chip_bytes
    readers: dict[int, set[int]] = {}
    for t in range(dag.tasks):
        for block in dag.reads_of(t):
            if dag.block_parent[block] < 0:
                readers.setdefault(int(block), set()).add(t)
    ancestors: list[set[int]] = []
    heads: list[int] = []
    for t in range(dag.tasks):
        direct = set(producers[starts[t] : starts[t + 1]].tolist())
        ancestors.append(direct.union(*(ancestors[p] for p in direct)))
        head = max((heads[p] + int(dag.cycles[p]) for p in direct), default=0)
        for a in {heads[u] for u in ancestors[t]}:
            work = sum(int(dag.cycles[u]) for u in ancestors[t] if heads[u] >= a)
            later = sum(
                int(dag.block_bytes[block])
                for block, by in readers.items()
                if by & ancestors[t] and by <= set(range(t)) and min(heads[u] for u in by) >= a
            )
            head = max(head, a - (-work // machine.engines), a + int((later - chip) / rate))
        heads.append(head)
    return heads


@pytest.mark.parametrize("seed", range(effort(12)))
def test_heads_lie_between_ways_and_what_plain_sets_and_plans_allow(seed: int) -> None:
    """Heads and rests lie above the longest ways, below those of plain sets, and hold in random plans."""
    rng = random.Random(seed)
    machine = rng.choice(["atomic-2x2[buffer=24,dram=2]", "atomic-2x2", "atomic-8x8[engines=3x2,buffer=32]"])
    problem, dag = random_problem(rng, machine)
    heads, remainders = heads_and_rests(dag, problem.machine)
    ways, to_end = path_lengths(dag)
    assert (heads >= ways).all()
    assert (remainders + dag.cycles >= to_end).all()
    assert (heads <= plain_heads(dag, problem.machine)).all()
    quick = heads_and_rests(dag, problem.machine, 0)
    assert (quick[0] == ways).all()
    assert (quick[1] + dag.cycles == to_end).all()
    for turn in range(4):
        plan = random_plan(rng, problem, dag)
        if turn % 2:
            plan = smoothed(dag, problem.machine, plan, rounds=6, tries=16, most=32, seed=turn)
        result = problem.evaluate(dag, plan)
        begin = result.step_start[plan.first]
        assert (begin >= heads - 1e-6).all()
        assert (begin + dag.cycles + remainders <= result.cycles + 1e-6).all()
        assert result.cycles >= dag_bounds(dag, problem.machine).cycles


def test_work_before_a_barrier_counts_and_so_does_staged_traffic() -> None:
    """A layer that reads all of a wide one begins when all engines are done, and waits for its weights."""
    machine = load_tiled_machine("atomic-2x2[array=16x16,engines=2x1,buffer=24,dram=1]")
    wide = conv2d(k=32, c=16, r=1, s=1, h=16, w=16)
    deep = conv2d(k=512, c=32, r=16, s=16, h=16, w=16)
    network = Network(
        "barrier", [Layer("a", wide, "test"), Layer("b", deep, "test")], [Link("a", "b", "I", "x", 32 * 256)]
    )
    problem = TiledProblem(network, machine, tiled_objective("makespan"))
    dag = problem.dag([AtomSize(4, 16, 16, 16), AtomSize(1, 1, 1, 16)])
    heads, _ = heads_and_rests(dag, machine)
    reads_all = heads[int(dag.base[1]) :]
    assert int(dag.cycles[: dag.base[1]].sum()) == 8 * 64
    assert int(heads[: dag.base[1]].max()) == 0
    assert int(reads_all.min()) == 8 * 64 // 2 // 2
    weights, first, chip = 512 * 32 * 256, 32 * 16 + 16 * 256, 2 * 24 * 1024
    assert dag_bounds(dag, machine).staged == weights + max(first, int(reads_all.min())) - chip


def test_the_path_binds_on_a_chain_and_the_window_between_two_chains() -> None:
    """A chain of one atom per layer takes its sum; layers of many atoms between two single ones
    take a window."""
    machine = load_tiled_machine("atomic-2x2[engines=2x1]")
    narrow = conv2d(k=32, c=32, r=1, s=1, h=8, w=8)
    layers = [Layer(f"l{i}", narrow, "test") for i in range(3)]
    links = [Link(f"l{i}", f"l{i + 1}", "I", "x", 32 * 64) for i in range(2)]
    problem = TiledProblem(Network("chain", layers, links), machine, tiled_objective("makespan"))
    whole = problem.dag([AtomSize(8, 8, 32, 32)] * 3)
    bounds = dag_bounds(whole, machine)
    assert (bounds.work, bounds.path, bounds.window) == (96, 192, 192)
    split = problem.dag([AtomSize(8, 8, 32, 32), AtomSize(2, 8, 32, 32), AtomSize(8, 8, 32, 32)])
    bounds = dag_bounds(split, machine)
    assert (bounds.work, bounds.path, bounds.window) == (96, 64 + 16 + 64, 64 + 32 + 64)


def test_resnet18_is_within_a_factor_of_its_bound() -> None:
    """On 8 x 8 engines at 16 B/cycle smoothed layers in turn stay within 1.3 of their atoms' bound."""
    problem = TiledProblem(
        resolve_model("resnet18", 1), load_tiled_machine("atomic-8x8[link=16]"), tiled_objective("makespan")
    )
    dag = problem.dag(balanced_sizes(problem))
    plan = complete(dag, problem.machine, *layer_sequential(dag, problem.machine))
    result = problem.evaluate(dag, smoothed(dag, problem.machine, plan))
    bound = dag_bounds(dag, problem.machine).cycles
    assert size_bounds(problem).cycles <= bound <= result.cycles <= 1.3 * bound
