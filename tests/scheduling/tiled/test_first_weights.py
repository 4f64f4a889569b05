"""The wait for first weights: beside all ways to begin, all divisions of tiny layers, and random plans."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

import pytest
from effort import effort
from studies.tiled_random import random_problem
from tiled_plans import narrowed, random_plan, random_sized_plan

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.first_weights import FirstTile, least_end, waiting_cycles
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_cycles, whole_layers
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network


def fluid_end(
    engines: int, work: list[int], tiles: tuple[FirstTile, ...], makers: Sequence[int | None]
) -> float:
    """When engines that divide all work end, each layer behind its tile, its maker and the first of all."""
    begin = min(tile.arrival for tile, maker in zip(tiles, makers, strict=True) if maker is None)
    arrivals: list[float] = []
    for tile, maker in zip(tiles, makers, strict=True):
        arrivals.append(max(begin if maker is None else arrivals[maker], tile.arrival))
    taken = [cycles + tile.more for cycles, tile in zip(work, tiles, strict=True)]
    return max(
        theta + sum(t for t, arrival in zip(taken, arrivals, strict=True) if arrival >= theta) / engines
        for theta in arrivals
    )


@pytest.mark.parametrize("seed", range(effort(200)))
def test_no_choice_of_first_tiles_ends_sooner(seed: int) -> None:
    """All combinations of tiles of a few layers, each scheduled as a fluid."""
    rng = random.Random(seed)
    count, engines = rng.randint(1, 5), rng.randint(1, 5)
    work = [rng.choice([0, 5, 40, 300]) for _ in range(count)]
    makers = [rng.randrange(at) if at and rng.random() < 0.7 else None for at in range(count)]
    tiles = [
        [
            FirstTile(rng.choice([0.0, 3.0, 20.0, 90.0]), rng.choice([0.0, 7.0, 100.0]))
            for _ in range(rng.randint(1, 3))
        ]
        for _ in range(count)
    ]
    least = min(fluid_end(engines, work, chosen, makers) for chosen in itertools.product(*tiles))
    assert least_end(engines, work, tiles, makers) <= least + 1e-9


def whole_work(problem: TiledProblem) -> int:
    """Cycles of all engines that no plan undercuts."""
    return sum(whole_cycles(problem, problem.batch))


def wait(problem: TiledProblem) -> int:
    """The bound alone, whether or not others are above it."""
    return waiting_cycles(problem, whole_layers(problem), whole_cycles(problem, problem.batch), 0)


def all_borders(size: int) -> Iterator[Borders]:
    """All ways to cut an axis."""
    inner = range(1, size)
    for count in range(size):
        for cuts in itertools.combinations(inner, count):
            yield (0, *cuts, size)


def tiny(machine: TiledMachine, k: int, c: int, *, pooled: bool) -> TiledProblem:
    """A convolution of 2 x 2 results, at times behind a pool."""
    conv = Layer("conv", conv2d(k=k, c=c, r=1, s=1, h=2, w=2), "test")
    links = [Link(None, "conv", "I", "image", 4 * c)]
    layers = [conv]
    if pooled:
        layers = [Layer("pool", pool2d(c=c, h=2, w=2, r=1, s=1, stride=1), "test"), conv]
        links = [Link(None, "pool", "I", "image", 4 * c), Link("pool", "conv", "I", "pool", 4 * c)]
    return TiledProblem(Network("tiny", layers, links), machine, tiled_objective("makespan"))


@pytest.mark.parametrize("seed", range(effort(12)))
def test_no_division_of_a_tiny_layer_ends_sooner(seed: int) -> None:
    """All cuts of channels and of the sum, each with several random plans, on one or two engines."""
    rng = random.Random(seed)
    base = rng.choice(["atomic-2x2[array=2x2,engines={0}]", "atomic-2x2[array=2x3,engines={0}]"])
    machine = load_tiled_machine(base.format(rng.choice(["1x1", "2x1"])))
    rate = rng.choice([0.125, 0.5, 1.0])
    machine = machine.changed(port_rate=rate, link_rate=rate, dram_port_rate=rng.choice([rate, 8.0]))
    problem = tiny(machine, rng.randint(1, 4), rng.randint(1, 4), pooled=rng.random() < 0.4)
    least = max(wait(problem), size_bounds(problem).cycles)
    shape = problem.units[-1].layer.operator.bounds
    whole = Tiling((0, 1), (0, shape["C"]), (0, 2), (0, 2), (0, 1))
    for channels, parts in itertools.product(all_borders(shape["K"]), all_borders(shape["C"])):
        rows = rng.choice([(0, 2), (0, 1, 2)])
        cut = Tiling((0, 1), channels, rows, rng.choice([(0, 2), (0, 1, 2)]), parts)
        dag = problem.dag([*[whole] * (len(problem.units) - 1), cut])
        for _ in range(3):
            assert least <= problem.evaluate(dag, random_plan(rng, problem, dag)).cycles


def test_the_wait_is_that_of_one_tile_that_fills_the_array() -> None:
    """16 x 16 weights of nine taps pass a port of 2 B/cycle in 1,152 cycles, before which nothing begins."""
    machine = load_tiled_machine("atomic-8x8[engines=2x1,link=2,array=16x16]")
    layer = Layer("conv", conv2d(k=16, c=16, r=3, s=3, h=30, w=30, pad=1), "test")
    network = Network("one", [layer], [Link(None, "conv", "I", "image", 16 * 900)])
    problem = TiledProblem(network, machine, tiled_objective("makespan"))
    (work,) = whole_cycles(problem, 1)
    waiting = size_bounds(problem).waiting
    assert 1152 + work / 2 <= waiting <= 1152 + 16 * 9 / 2 + work / 2 + 1


def test_a_layer_that_begins_at_once_fills_a_part_of_the_wait() -> None:
    """Engines have a pool to do while weights come, but no more than that."""
    machine = load_tiled_machine("atomic-8x8[engines=2x1,link=8,array=16x16]")
    conv = Layer("conv", conv2d(k=16, c=16, r=3, s=3, h=7, w=7, pad=1), "test")
    pool = Layer("pool", pool2d(c=16, h=14, w=14, r=2, s=2, stride=2), "test")
    links = [Link(None, "pool", "I", "image", 16 * 196), Link("pool", "conv", "I", "pool", 16 * 49)]
    problem = TiledProblem(Network("two", [pool, conv], links), machine, tiled_objective("makespan"))
    pooling, work = whole_cycles(problem, 1)
    wait = 16 * 16 * 9 / 8
    assert pooling < 2 * wait
    assert size_bounds(problem).waiting == math.ceil(wait + work / 2 - 0.1)


def test_readers_fill_no_part_of_the_wait() -> None:
    """A pool behind a convolution begins behind it, however soon its own operands could come."""
    machine = load_tiled_machine("atomic-8x8[engines=2x1,link=2,array=16x16]")
    conv = Layer("conv", conv2d(k=16, c=16, r=3, s=3, h=28, w=28, pad=1), "test")
    pool = Layer("pool", pool2d(c=16, h=28, w=28, r=2, s=2, stride=2), "test")
    links = [Link(None, "conv", "I", "image", 16 * 784), Link("conv", "pool", "I", "conv", 16 * 784)]
    problem = TiledProblem(Network("two", [conv, pool], links), machine, tiled_objective("makespan"))
    assert size_bounds(problem).waiting >= 16 * 16 * 9 / 2 + whole_work(problem) / 2


@pytest.mark.parametrize("seeds", [range(20 * at, 20 * at + 20) for at in range(effort(4))], ids=str)
def test_no_random_plan_ends_before_the_wait_and_its_work(seeds: range) -> None:
    """Random plans of random sizes, on ports that bring little."""
    rng = random.Random(seeds.start)
    for seed in seeds:
        problem = narrowed(random_problem(seed), seed)
        waiting = wait(problem)
        assert waiting >= whole_work(problem) / problem.machine.engines
        for _ in range(3):
            planned = random_sized_plan(rng, problem, 1500)
            if planned is not None:
                assert waiting <= problem.evaluate(*planned).cycles
