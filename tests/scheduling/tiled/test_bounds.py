"""Bounds never exceed what a legal plan takes, and attain what they should on problems that a hand
can solve."""

from __future__ import annotations

import random

import pytest
from tiled_plans import random_plan, random_problem

from tilewright.formulation.scheduling.tiled.completion import complete
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.levelling import levelled
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.shares import shared_sizes
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds, size_bounds
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


@pytest.mark.parametrize("seed", range(12))
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


def test_resnet50_is_within_a_factor_of_its_bound() -> None:
    """On 8 x 8 engines at 16 B/cycle levelled layers in turn stay within 1.3 of their atoms' bound."""
    problem = TiledProblem(
        resolve_model("resnet50", 1), load_tiled_machine("atomic-8x8[link=16]"), tiled_objective("makespan")
    )
    dag = problem.dag(shared_sizes(problem))
    plan = complete(dag, problem.machine, *layer_sequential(dag, problem.machine))
    result = problem.evaluate(dag, levelled(dag, problem.machine, plan))
    bound = dag_bounds(dag, problem.machine).cycles
    assert size_bounds(problem).cycles <= bound <= result.cycles <= 1.3 * bound
