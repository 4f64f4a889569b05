"""Small problems and plans that several tests judge."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_size_list
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.network import Layer, Link, Network


def random_network(rng: random.Random, layers: int = 5) -> Network:
    """Convolutions of random sizes that read earlier results of 8 x 8 rows and columns, and a sum
    at times."""
    made: list[tuple[Layer, int]] = []
    links: list[Link] = []
    for i in range(layers):
        name = f"l{i}"
        source, channels = rng.choice(made[-2:]) if made else (None, 16)
        same = [layer for layer, width in made if width == channels and layer is not source]
        operator: Operator
        if source is not None and same and rng.random() < 0.4:
            operator, width = elementwise(shape=(1, channels, 8, 8)), channels
            links.append(Link(rng.choice(same).name, name, "I1", "x", channels * 64))
        else:
            kernel, width = rng.choice([1, 3]), rng.choice([16, 32, 48])
            operator = conv2d(k=width, c=channels, r=kernel, s=kernel, h=8, w=8, pad=kernel // 2)
        operand = operator.inputs[0].name
        if source is not None:
            links.append(Link(source.name, name, operand, source.name, channels * 64))
        made.append((Layer(name, operator, "test"), width))
    return Network("random", [layer for layer, _ in made], links)


def random_problem(rng: random.Random, machine: str) -> tuple[TiledProblem, AtomicDag]:
    """A random network on a machine, cut at random into atoms that fit."""
    sums = rng.choice(["chain", "reduction"])
    problem = TiledProblem(
        random_network(rng),
        load_tiled_machine(machine),
        tiled_objective("makespan"),
        batch=rng.choice([1, 1, 2]),
        fuse=rng.random() < 0.5,
        partial_sums=sums,  # type: ignore[arg-type]
    )
    sizes = [
        AtomSize(
            rng.choice([2, 3, 4, 8]), rng.choice([4, 8]), rng.choice([8, 16, 48]), rng.choice([8, 16, 32])
        )
        for _ in problem.units
    ]
    return problem, problem.dag(sizes)


def random_plan(rng: random.Random, problem: TiledProblem, dag: AtomicDag) -> Plan:
    """A legal plan by one of the quick orders, completed under random rules."""
    kind = rng.choice(["layers", "list", "noise"])
    if kind == "layers":
        engine, step = layer_sequential(dag, problem.machine)
    else:
        tails = path_lengths(dag)[1]
        noise = np.array([rng.random() for _ in range(dag.tasks)]) if kind == "noise" else np.zeros(dag.tasks)
        priority = (tails * (1.0 + noise) * 16).astype(np.int64)
        engine, step = list_order(dag, problem.machine, priority=priority)
    if kind == "noise":
        turn = np.array(rng.sample(range(problem.machine.engines), problem.machine.engines), dtype=np.int32)
        engine = turn[engine]
    eviction = rng.choice(["furthest", "occupation"])
    return complete(
        dag,
        problem.machine,
        engine,
        step,
        eviction=eviction,
        ahead=rng.choice([1, 4, 8]),  # type: ignore[arg-type]
    )


def random_sizes(rng: random.Random, problem: TiledProblem) -> list[AtomSize]:
    """Sizes that fit, from anywhere in each layer's menu."""
    engines = rng.choice([1, problem.machine.engines])
    return [
        rng.choice(balanced_size_list(problem, unit, engines, room=rng.choice([0.3, 1.0]), most=60))
        for unit in problem.units
    ]


def random_sized_plan(rng: random.Random, problem: TiledProblem, most: int) -> tuple[AtomicDag, Plan] | None:
    """A random plan of atoms of random sizes; ``None`` for more than that, or where one does not fit."""
    try:
        dag = problem.dag(random_sizes(rng, problem))
        return None if dag.tasks > most else (dag, random_plan(rng, problem, dag))
    except InputError:
        return None


def narrowed(problem: TiledProblem, seed: int) -> TiledProblem:
    """A problem on a machine whose ports bring little, so that much depends on what comes when."""
    rng = random.Random(seed)
    rate = rng.choice([0.25, 0.5, 1.0])
    machine = problem.machine.changed(
        link_rate=2.0 * rate, port_rate=rate, dram_port_rate=rate, dram_rate=rng.choice([1.0, 4.0])
    )
    return replace(problem, machine=machine)
