"""Begins of layers and what follows them, against random plans, and one that needs little more."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from studies.tiled_random import random_problem
from tiled_plans import narrowed, random_plan, random_sizes

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.arrays import Floats
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles, least_key
from tilewright.solvers.scheduling.tiled.layer_begins import LayerLoads, following, layer_begins, layer_loads
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_cycles, whole_layers
from tilewright.workloads.mapping.convolutions import conv2d, transposed_conv2d
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.network import Layer, Link, Network

BINDING = (13, 21, 34, 72, 80, 138)
"""Seeds of problems whose largest bound on cycles is what follows a begin."""


def begun(problem: TiledProblem, dag: AtomicDag, plan: Plan, *, finished: bool) -> Floats:
    """Per unit, when the first step begins in which one of its atoms does, or one that finishes results."""
    starts = problem.evaluate(dag, plan).step_start
    every = np.arange(dag.tasks)
    finishing = (every + 1 - dag.base[dag.unit]) % dag.slots[dag.unit] == 0
    counted = every[finishing] if finished else every
    at = np.full(len(problem.units), np.inf)
    np.minimum.at(at, dag.unit[counted], starts[plan.first[counted]])
    return at


def loads_of(problem: TiledProblem) -> tuple[LayerLoads, AtomicDag]:
    """What its layers take, and every layer as one atom."""
    whole = whole_layers(problem)
    return layer_loads(whole, whole_cycles(problem, 1), whole_cycles(problem, problem.batch)), whole


def check(seed: int, turn: int = 0) -> tuple[bool, bool]:
    """Whether there is a plan, and whether what follows begins is the largest bound on its cycles."""
    rng, problem = random.Random(seed + 1000 * turn), narrowed(random_problem(seed), seed)
    try:
        dag = problem.dag(random_sizes(rng, problem))
        if dag.tasks > 1000:
            return False, False
        plan = random_plan(rng, problem, dag)
    except InputError:
        return False, False
    result, bounds = problem.evaluate(dag, plan), size_bounds(problem)
    assert bounds.cycles <= result.cycles
    assert least_key(problem) <= problem.objective.key(result.energy.total, result.cycles)
    loads, whole = loads_of(problem)
    for finished in (False, True):
        begins = layer_begins(whole, problem.machine, loads, finished=finished)
        assert (begins <= begun(problem, dag, plan, finished=finished) + 1e-6).all()
    return True, bounds.cycles > max(bounds.work, bounds.compulsory, bounds.ports)


def test_no_layer_of_random_plans_begins_earlier() -> None:
    assert sum(check(seed)[0] for seed in range(8)) > 3


def test_no_plan_undercuts_what_follows_a_begin() -> None:
    for seed in BINDING:
        plans = [check(seed, turn) for turn in range(3)]
        assert (True, True) in plans


@pytest.mark.slow
def test_no_layer_of_many_random_plans_begins_earlier() -> None:
    plans = [check(seed) for seed in range(1000, 1200)]
    assert sum(planned for planned, _ in plans) > 100
    assert any(binding for _, binding in plans)
    for seed in BINDING:
        assert sum(check(seed, turn)[0] for turn in range(3, 30)) > 3


def test_a_plan_that_fetches_computes_and_stores_in_turn_takes_little_more() -> None:
    """All weights of eight layers come in before a result of the ninth is there to leave."""
    layers = [Layer(f"l{i}", conv2d(k=16, c=16, r=1, s=1, h=8, w=8), "test") for i in range(8)]
    layers.append(Layer("l8", conv2d(k=64, c=16, r=1, s=1, h=8, w=8), "test"))
    links = [Link(f"l{i}", f"l{i + 1}", "I", f"x{i}", 1024) for i in range(8)]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=16x16,dram=1000,port=1]")
    problem = TiledProblem(Network("chain", layers, links), machine, tiled_objective("makespan"))
    bounds, weights, results = size_bounds(problem), 8 * 256, 4096
    assert (bounds.ports, bounds.cycles) == (weights + 1024 + 1024, weights + results)
    dag = problem.dag([AtomSize(1, 8, 16, 16)] * 9)
    order = np.argsort([dag.box(task)[2][0] * 16 + int(dag.unit[task]) for task in range(dag.tasks)])
    step = np.argsort(order).astype(np.int32)
    plan = complete(dag, machine, np.zeros(dag.tasks, np.int32), step)
    assert bounds.cycles <= problem.evaluate(dag, plan).cycles <= 1.3 * bounds.cycles


def test_weights_that_fit_the_buffers_may_be_there_before_their_layer_begins() -> None:
    """The second layer needs all of the first, which computes for longer than all weights take to come."""
    layers = [
        Layer("a", conv2d(k=1, c=1, r=4, s=4, h=11, w=11), "test"),
        Layer("b", conv2d(k=4, c=1, r=8, s=8, h=8, w=8), "test"),
    ]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=1x1,dram=1000,port=0.5]")
    network = Network("late", layers, [Link("a", "b", "I", "x", 64)])
    loads, whole = loads_of(TiledProblem(network, machine, tiled_objective("makespan")))
    assert loads.weights.tolist() == [16, 256]
    # what is left to pass the port behind the first layer are four results
    assert following(whole, machine, loads, 0) == (1024 + 256, 1024 + 4 / 0.5)


def test_a_sample_begins_before_others_are_done() -> None:
    """Each of four samples goes through both layers before the next one does; so do results that leave."""
    layers = [
        Layer("a", conv2d(k=1, c=16, r=1, s=1, h=4, w=4), "test"),
        Layer("b", conv2d(k=4, c=1, r=4, s=4, h=4, w=4), "test"),
    ]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=1x1,dram=1000,port=1000]")
    network, waiting = Network("samples", layers, [Link("a", "b", "I", "x", 16)]), []
    for batch in (1, 4):
        problem = TiledProblem(network, machine, tiled_objective("edp"), batch=batch)
        dag = problem.dag([AtomSize(4, 4, 16, 1), AtomSize(1, 1, 1, 4)])
        step = np.array([2 * (t % batch) + int(dag.unit[t]) for t in range(dag.tasks)], dtype=np.int32)
        plan = complete(dag, machine, np.zeros(dag.tasks, np.int32), step)
        loads, whole = loads_of(problem)
        begins = layer_begins(whole, machine, loads)
        assert (begins <= begun(problem, dag, plan, finished=False)).all()
        assert begins[1] == 256
        narrow = replace(problem, machine=load_tiled_machine("atomic-2x2[engines=1x1,port=0.01]"))
        over = CopiesOverCycles(narrow, size_bounds(narrow))
        waiting.append([side.tolist() for side in over._waiting(whole)])
    assert waiting[0] == waiting[1]


def test_a_part_of_a_sum_begins_before_all_channels_are_done() -> None:
    """It reads all pixels of one channel of four; what finishes a result reads those of all."""
    layers = [
        Layer("a", conv2d(k=4, c=4, r=1, s=1, h=8, w=8), "test"),
        Layer("b", conv2d(k=1, c=4, r=8, s=8, h=8, w=8), "test"),
    ]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=1x1,dram=1000,port=1000]")
    network = Network("channels", layers, [Link("a", "b", "I", "x", 256)])
    loads, whole = loads_of(TiledProblem(network, machine, tiled_objective("makespan")))
    assert layer_begins(whole, machine, loads)[1] <= 256
    assert layer_begins(whole, machine, loads, finished=True)[1] == 1024


def test_weights_of_scattered_results_may_come_later() -> None:
    """In a transposed convolution each of four taps makes pixels of its own."""
    spread = transposed_conv2d(k=16, c=16, p=8, q=8, r=2, s=2, stride=2)
    layers = [Layer("a", spread, "test"), Layer("b", conv2d(k=16, c=16, r=1, s=1, h=16, w=16), "test")]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=16x16,dram=1000,port=1]")
    network = Network("spread", layers, [Link("a", "b", "I", "x", 4096)])
    loads, whole = loads_of(TiledProblem(network, machine, tiled_objective("makespan")))
    assert loads.weights[0] == 4 * 256
    assert layer_begins(whole, machine, loads, finished=True)[1] <= 256


def test_weights_of_other_pixels_may_come_later() -> None:
    """Where each row has its own weights, one pixel of all channels needs the weights of its row alone."""
    rows = nest("O[k,p] += I[c,p] * W[k,c,p] : k=16, c=16, p=64")
    layers = [Layer("a", rows, "test"), Layer("b", conv2d(k=16, c=16, r=1, s=1, h=64, w=1), "test")]
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=16x16,dram=1000,port=1]")
    network = Network("rows", layers, [Link("a", "b", "I", "x", 1024)])
    loads, whole = loads_of(TiledProblem(network, machine, tiled_objective("makespan")))
    assert loads.weights[0] == 64 * 256
    assert layer_begins(whole, machine, loads, finished=True)[1] <= 256 + 16


@pytest.mark.parametrize(
    ("machine", "least"), [("array=16x16,dram=1000,port=1", 1024), ("array=1x1,dram=1000,port=1000", 64)]
)
def test_a_part_of_a_sum_begins_before_all_weights_have_come(machine: str, least: int) -> None:
    """It needs one block of channels; what finishes a result has all weights, and all work, before it."""
    layers = [
        Layer("a", conv2d(k=64, c=16, r=1, s=1, h=2, w=2), "test"),
        Layer("b", conv2d(k=16, c=64, r=1, s=1, h=2, w=2), "test"),
    ]
    engine = load_tiled_machine(f"atomic-2x2[engines=1x1,{machine}]")
    network = Network("parts", layers, [Link("a", "b", "I", "x", 256)])
    problem = TiledProblem(network, engine, tiled_objective("makespan"))
    dag = problem.dag([AtomSize(2, 2, 16, 8), AtomSize(2, 2, 8, 16)])
    assert [*np.diff(dag.base)] == [8, 8]
    step = np.array([2 * (task % 8) + int(dag.unit[task]) for task in range(dag.tasks)], dtype=np.int32)
    plan = complete(dag, engine, np.zeros(dag.tasks, np.int32), step)
    loads, whole = loads_of(problem)
    part, finish = (layer_begins(whole, engine, loads, finished=finished)[1] for finished in (False, True))
    assert part <= begun(problem, dag, plan, finished=False)[1]
    assert part < least <= finish <= begun(problem, dag, plan, finished=True)[1]
