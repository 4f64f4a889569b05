"""No division into atoms, and no plan of any, undercuts the bound over all sizes."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network, random_plan

from tilewright.formulation.scheduling.tiled.coordinates import inner_run, shape_of
from tilewright.formulation.scheduling.tiled.dag import INPUT, WEIGHTS
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.reading import input_sizes
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, Borders, Tiling
from tilewright.foundation.arrays import distinct
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.layer_begins import stored_bytes
from tilewright.solvers.scheduling.tiled.size_bounds import (
    incoming_bytes,
    quick_bounds,
    size_bounds,
    whole_layers,
)
from tilewright.workloads.mapping.convolutions import conv2d, depthwise_conv2d, transposed_conv2d
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.gradients import gradient
from tilewright.workloads.mapping.matrices import fully_connected, gemm, matmul
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise, reduction
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

MACHINES = (
    "atomic-2x2[array=4x4,dram=64]",
    "atomic-2x2[array=16x16,dram=2]",
    "atomic-8x8[engines=3x2,array=4x8,dataflow=yx]",
    "atomic-8x8[engines=4x1,topology=torus,ports=left]",
    "set-edge-4x4",
    "set-edge-4x4[array=2x3,engines=2x2,topology=htree,ports=corners]",
)


NESTS = (
    "O[b,k,p] += I[b+p,c] * W[k,c,b] : b=3",
    "O[k,p] += I[p+c] * W[k+c]",
    "O[g,k,p] += I[2*g+p,c] * W[k+c,g] : g=4",
    "O[n,k,p,q] += I[n,c,2*p+r,q] * W[k,c,r] : n=2, q=5, r=3",
    "O[p,k] += I[k,p,c]",
)
"""Operators in index notation, with indices that coordinates share."""


def random_machine(rng: random.Random) -> TiledMachine:
    """One of a few, at times with start-up cycles, wide elements or power that always runs."""
    machine = load_tiled_machine(rng.choice(MACHINES))
    engine = replace(
        machine.engine,
        startup_cycles=rng.choice([0, 0, 5]),
        element_bytes=rng.choice([1, 1, 2]),
        static_power=rng.choice([0.0, 0.0, 3.5]),
    )
    return machine.changed(engine=engine)


def random_operator(rng: random.Random) -> Operator:
    """A layer of any kind with odd sizes."""
    k, c, h, w = rng.randint(1, 12), rng.randint(1, 12), rng.randint(3, 9), rng.randint(3, 9)
    r, s, stride = rng.choice([1, 2, 3]), rng.choice([1, 3]), rng.choice([1, 2, 3])
    window = {"r": r, "s": s, "stride": stride, "pad": (r // 2, s // 2)}
    choices: dict[str, Operator] = {
        "conv": conv2d(k=k, c=c, h=h, w=w, **window),
        "dilated": conv2d(k=k, c=c, h=h + 4, w=w + 4, r=r, s=s, dilation=2),
        "grouped": conv2d(k=3 * k, c=3 * c, groups=3, h=h, w=w, **window),
        "depthwise": depthwise_conv2d(c=c, h=h, w=w, **window),
        "transposed": transposed_conv2d(k=k, c=c, p=h, q=w, r=r, s=s, stride=stride),
        "pool": pool2d(c=c, h=h, w=w, r=2, s=2, stride=stride),
        "sum": elementwise(shape=(1, c, h, w)),
        "reduction": reduction(shape=(1, c, h, w), over=(2, 3)),
        "gemm": gemm(m=h, n=k, k=7 * c),
        "fc": fully_connected(k=k, c=50 * c),
        "heads": matmul(m=h, n=w, k=c, batch=(1, k)),
        "error": gradient(conv2d(k=k, c=c, h=h, w=w, r=r, s=s, stride=stride), "I"),
        "update": gradient(conv2d(k=k, c=c, h=h, w=w, r=r, s=s, stride=stride), "W"),
    }
    if rng.random() < 0.2:
        return nest(rng.choice(NESTS), bounds={"k": k, "c": c, "p": h})
    return rng.choice(list(choices.values()))


def random_borders(rng: random.Random, size: int, run: int) -> Borders:
    """Borders of uneven parts that cross no run."""
    runs = list(range(0, size, run))
    cuts = {0, size, *rng.sample(runs, rng.randint(0, len(runs) - 1))}
    if run > 1 and rng.random() < 0.6:
        begin = rng.choice(runs)
        cuts |= {begin, begin + run, *(begin + rng.randint(1, run - 1) for _ in range(rng.randint(1, 2)))}
    return tuple(sorted(cuts))


def random_tiling(rng: random.Random, operator: Operator, batch: int, chained: bool = False) -> Tiling:
    """A division of a layer, one axis after the other at times left whole; chains of sums begin anywhere."""
    shape = shape_of(operator)
    sizes = (*shape.sizes, shape.parts)
    cuts = [
        random_borders(rng, size, inner_run(operator, axis)) if rng.random() < 0.7 else (0, size)
        for axis, size in enumerate(sizes)
    ]
    tiling = Tiling(random_borders(rng, batch, 1), *cuts)
    if not (chained and operator.is_mac):
        return tiling
    return replace(tiling, begins=tuple(rng.randrange(tiling.divisions) for _ in range(tiling.boxes)))


def random_layers(rng: random.Random) -> Network:
    """Layers of any kind side by side, some of which read one input of the network."""
    layers = [Layer(f"l{i}", random_operator(rng), "test") for i in range(3)]
    links = [
        Link(None, layer.name, read.name, "image", math.prod(axis.size for axis in read.axes))
        for layer in layers
        for read in layer.operator.inputs[:1]
        if rng.random() < 0.5
    ]
    return Network("layers", layers, links)


def random_cut(rng: random.Random, network: Network) -> TiledProblem:
    """A network on a random machine."""
    return TiledProblem(
        network,
        random_machine(rng),
        tiled_objective("edp"),
        batch=rng.choice([1, 2, 3]),
        fuse=rng.random() < 0.5,
        partial_sums=rng.choice(["chain", "reduction"]),  # type: ignore[arg-type]
    )


def check_divisions(seed: int, times: int) -> None:
    """Each figure of random divisions, summed over their atoms, beside the bound."""
    rng = random.Random(seed)
    problem = random_cut(rng, random_layers(rng))
    free = size_bounds(problem)
    for _ in range(times):
        dag = problem.unchecked_dag(
            [
                random_tiling(rng, u.layer.operator, problem.batch, problem.partial_sums == "chain")
                for u in problem.units
            ]
        )
        fixed = dag_bounds(dag, problem.machine, effort=0)
        assert free.work <= fixed.work
        assert free.compulsory <= fixed.compulsory
        assert free.ports <= fixed.ports
        assert free.energy <= fixed.energy * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(effort(25)))
def test_no_division_of_any_layer_undercuts_the_bound(seed: int) -> None:
    check_divisions(seed, 4)


@pytest.mark.slow
def test_no_division_of_many_layers_undercuts_the_bound() -> None:
    for seed in range(1000, 1300):
        check_divisions(seed, 10)


def check_plans(seed: int) -> None:
    """Plans of a random network cut at random, each component as the evaluator counts it."""
    rng = random.Random(seed)
    problem = random_cut(rng, random_network(rng, 4))
    free, quick, machine = size_bounds(problem), quick_bounds(problem), problem.machine
    assert quick.energy <= free.energy * (1 + 1e-12)
    tilings = [random_tiling(rng, unit.layer.operator, problem.batch) for unit in problem.units]
    try:
        dag = problem.dag(tilings)
        plans = [random_plan(rng, problem, dag) for _ in range(2)]
    except InputError:
        return
    for plan in plans:
        result = problem.evaluate(dag, plan)
        assert quick.cycles <= free.cycles <= result.cycles
        assert free.energy <= result.energy.total * (1 + 1e-12)
        moved = result.dram_read_bytes + result.dram_write_bytes
        assert free.compulsory <= -(-moved // machine.dram_rate)


@pytest.mark.parametrize("seed", range(effort(12)))
def test_no_plan_of_any_atoms_undercuts_the_bound(seed: int) -> None:
    check_plans(seed)


@pytest.mark.slow
def test_no_plan_of_many_undercuts_the_bound() -> None:
    for seed in range(1000, 1300):
        check_plans(seed)


def test_one_atom_that_fits_costs_its_bound() -> None:
    """A layer that one engine does alone: nothing of its energy is left open."""
    machine = load_tiled_machine("atomic-2x2[engines=1x1,array=16x16]")
    network = Network("one", [Layer("a", conv2d(k=32, c=48, r=3, s=3, h=8, w=8, pad=1), "test")])
    problem = TiledProblem(network, machine, tiled_objective("edp"))
    rng = random.Random(0)
    dag = problem.dag([Tiling((0, 1), (0, 32), (0, 8), (0, 8), (0, 48))])
    result = problem.evaluate(dag, random_plan(rng, problem, dag))
    assert result.energy.total == pytest.approx(size_bounds(problem).energy)


def test_an_input_that_layers_share_counts_once() -> None:
    """Two layers that read the same image need not fetch it twice; two images come both."""
    convolution, other = (conv2d(k=4, c=3, r=r, s=r, h=8, w=8, pad=r // 2) for r in (1, 3))
    weights, left = 4 * 3 * (1 + 9), 2 * 4 * 64

    def read(*images: str) -> int:
        layers = [Layer("a", convolution, "test"), Layer("b", other, "test")]
        links = [Link(None, at.name, "I", name, 192) for at, name in zip(layers, images, strict=True)]
        problem = TiledProblem(
            Network("two", layers, links), load_tiled_machine("atomic-2x2[dram=1]"), tiled_objective("edp")
        )
        return size_bounds(problem).compulsory - weights - left

    assert (read("x", "x"), read("x", "y")) == (192, 384)


def read_again(kind: str) -> Network:
    """Networks of which one layer, with what rides on it, reads an input as two operands."""
    shape = (1, 8, 6, 4)

    def from_input(layer: str, operand: str, channel: int = 0) -> Link:
        moves = ("Concat",) if kind == "joined" else ()
        return Link(None, layer, operand, "x", math.prod(shape), channel, moves)

    if kind == "joined":
        joined = conv2d(k=4, c=16, r=3, s=3, h=6, w=4, pad=1)
        return Network(kind, [Layer("a", joined, "test")], [from_input("a", "I"), from_input("a", "I", 8)])
    first = (
        elementwise(shape=shape, operands=1)
        if kind == "swish"
        else conv2d(k=8, c=8, r=3, s=3, h=6, w=4, pad=1)
    )
    last = elementwise(shape=shape)
    links = [from_input("a", "I"), from_input("b", "I0"), Link("a", "b", "I1", "a", math.prod(shape))]
    return Network(kind, [Layer("a", first, "test"), Layer("b", last, "test")], links)


@pytest.mark.parametrize("kind", ["swish", "residual", "joined"])
def test_an_input_that_one_layer_reads_twice_counts_once(kind: str) -> None:
    """An atom reads a block once for both operands, and needs room for it once."""
    problem = TiledProblem(
        read_again(kind), load_tiled_machine("atomic-2x2"), tiled_objective("makespan"), batch=3
    )
    assert len(problem.units) == 1
    operator = problem.units[0].layer.operator
    sizes = {input_sizes(operator, "I", read.link) for read in problem.units[0].reads if not read.late}
    assert sizes == {(8, 6, 4)}
    least = incoming_bytes(whole_layers(problem)) - stored_bytes(whole_layers(problem)).sum()
    assert least == 3 * 8 * 6 * 4
    for size in (AtomSize(6, 4, 64, 64), AtomSize(2, 4, 64, 64), AtomSize(3, 2, 8, 2), AtomSize(1, 1, 4, 1)):
        dag = problem.dag([size])
        pairs = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts)) * dag.blocks + dag.reads
        assert len(distinct(pairs)) == len(pairs)
        read = distinct(dag.reads)
        assert least <= dag.block_bytes[read[dag.block_kind[read] == INPUT]].sum()
    whole = problem.dag([AtomSize(6, 4, 64, 64)])
    weights = whole.block_bytes[whole.block_kind == WEIGHTS].sum()
    assert (whole.needs == 8 * 6 * 4 + weights + whole.block_bytes[: whole.tasks]).all()


def test_sizes_of_random_borders_cover_their_axis() -> None:
    """The generator of divisions makes uneven ones, and none that crosses a run."""
    rng = random.Random(1)
    drawn = [random_borders(rng, 24, 6) for _ in range(200)]
    assert any(len({b - a for a, b in itertools.pairwise(borders)}) > 2 for borders in drawn)
    assert all(borders[0] == 0 and borders[-1] == 24 for borders in drawn)
