"""Links that weights pass: counted in random plans and in all places of a tiny layer's atoms."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from effort import effort
from studies.tiled_random import random_problem
from tiled_plans import random_sized_plan

from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan, multicast_groups
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles, least_key
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.solvers.scheduling.tiled.weight_hops import WeighingLayer, link_bytes, port_distances
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.matrices import fully_connected
from tilewright.workloads.network import Layer, Link, Network


def passed(dag: AtomicDag, machine: TiledMachine, plan: Plan) -> int:
    """Bytes of weights times the links between routers that a plan's transfers pass."""
    net, moves = topology(machine), plan.transfers
    groups = multicast_groups(moves, machine.engines)
    links: dict[tuple[int, int], int] = {}
    for at in np.flatnonzero(dag.block_kind[moves.block] == WEIGHTS):
        for link in net.route(int(moves.source[at]), int(moves.target[at])):
            if link >= net.routers:
                links[int(groups[at]), int(link)] = int(moves.bytes[at])
    return sum(links.values())


def test_weights_of_random_plans_pass_no_fewer_links() -> None:
    """On random networks and machines, plans of random sizes and orders."""
    count = far = 0
    instances = effort(60)
    for seed in range(instances):
        rng = random.Random(seed)
        problem = random_problem(seed)
        over = CopiesOverCycles(problem, size_bounds(problem))
        planned = random_sized_plan(rng, problem, 1000)
        if planned is None:
            continue
        dag, plan = planned
        cycles = float(problem.evaluate(dag, plan).cycles)
        least = over.link_bytes(np.array([cycles]))[0]
        assert least <= passed(dag, problem.machine, plan) * (1 + 1e-9)
        count, far = count + 1, far + (least > 0)
    assert count > 15 * instances // 36
    assert far > 2 * instances // 36


def row(topology_name: str = "mesh") -> TiledProblem:
    """A matrix product on four engines in a row, of which the first has a port."""
    text = f"atomic-2x2[engines=4x1,array=4x4,ports=left,topology={topology_name}]"
    network = Network("row", [Layer("a", fully_connected(k=16, c=8), "t")])
    return TiledProblem(network, load_tiled_machine(text), tiled_objective("edp"))


@pytest.mark.parametrize(("kind", "distances"), [("mesh", [0, 1, 2, 3]), ("torus", [0, 1, 2, 1])])
def test_no_place_of_four_atoms_passes_fewer_links(kind: str, distances: list[int]) -> None:
    """All ways to deal the atoms of a layer out over a row of engines; the even one needs just the bound."""
    problem = row(kind)
    machine = problem.machine
    assert port_distances(machine) == distances
    dag = problem.dag([AtomSize(1, 1, 8, 4)])
    assert dag.tasks == 4
    each, least = float(dag.cycles[0]), least_key(problem)
    layer = WeighingLayer(0, float(dag.cycles.sum()), 8 * 16)
    evenly = []
    for engines in product(range(4), repeat=4):
        plan = complete(dag, machine, np.array(engines, np.int32), np.arange(4, dtype=np.int32))
        busiest = np.array([each * max(engines.count(engine) for engine in range(4))])
        low = link_bytes(machine, [layer], busiest, [busiest])[0]
        links = passed(dag, machine, plan)
        assert low <= links + 1e-9
        if sorted(engines) == [0, 1, 2, 3]:
            evenly.append((low, links))
        result = problem.evaluate(dag, plan)
        assert least <= problem.objective.key(result.energy.total, result.cycles)
    # a sample's batch of inputs apart, an even deal takes each part of the weights to its engine
    assert evenly
    assert all(low == links == 32 * sum(distances) for low, links in evenly)


@pytest.mark.parametrize(("split", "tight"), [("channels", 0.99), ("pixels", 0.75)])
def test_plans_that_share_a_layer_well_move_little_more(split: str, tight: float) -> None:
    """Parts of the weights sent to their engines, or all weights to all engines, are nearly the bound."""
    if split == "channels":  # the weights of each engine pass the links to it, and the inputs are copied
        layers = [Layer("b", conv2d(k=256, c=64, r=1, s=1, h=2, w=2), "t")]
        links, sizes = [], [AtomSize(2, 2, 64, 64)]
    else:  # all weights are copied, and the inputs have been made where they are read
        layers = [
            Layer("a", conv2d(k=8, c=1, r=1, s=1, h=4, w=64), "t"),
            Layer("b", conv2d(k=64, c=8, r=1, s=1, h=4, w=64), "t"),
        ]
        links, sizes = [Link("a", "b", "I", "x", 8 * 256)], [AtomSize(1, 64, 1, 8), AtomSize(1, 64, 8, 64)]
    machine = load_tiled_machine("atomic-2x2[engines=4x1,array=4x4,ports=left,link=100000,dram=100000]")
    problem = TiledProblem(Network("n", layers, links), machine, tiled_objective("edp"))
    bounds, dag = size_bounds(problem), problem.dag(sizes)
    order = np.arange(dag.tasks, dtype=np.int32)
    plan = complete(dag, machine, order % 4, order // 4)
    result = problem.evaluate(dag, plan)
    extra = CopiesOverCycles(problem, bounds).energy(np.array([float(result.cycles)]))[0]
    # the links of write-backs are not in the bound
    above = result.energy.total - bounds.energy
    back = plan.transfers.target >= machine.engines
    routes = zip(plan.transfers.source[back], plan.transfers.target[back], strict=True)
    hops = [topology(machine).distance(int(source), int(target)) for source, target in routes]
    above -= machine.hop_energy * float((plan.transfers.bytes[back] * np.array(hops)).sum())
    assert tight * above <= extra <= above * (1 + 1e-9)


def test_near_engines_take_the_layers_with_the_most_weights() -> None:
    """Where the near engines have time for the heavy layer only, the light one's weights go far."""
    machine = row().machine
    cycles = np.array([100.0])
    layers = [WeighingLayer(0, 100.0, 600), WeighingLayer(1, 300.0, 60)]
    # the engines nearer than 1, 2 and 3 do 100, 200 and 300 of 400 cycles of work
    light_far = link_bytes(machine, layers, cycles, [cycles, cycles])[0]
    assert light_far == pytest.approx(60 + 40 + 20)
    heavy_late = link_bytes(machine, layers, cycles, [cycles / 2, cycles])[0]
    # in half of the time the first engine does half of the heavy layer, and the second one the other
    assert heavy_late == pytest.approx(300 + 50 + 40 + 20)
