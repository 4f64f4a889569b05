"""Layers beside ports of DRAM: which ones, legal plans, and the least energy of few atoms."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest
from effort import effort

from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled import beside_ports as module
from tilewright.heuristics.scheduling.tiled.beside_ports import beside_ports
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential, list_order, zigzag
from tilewright.heuristics.scheduling.tiled.regions import regions
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

MACHINES = (
    "atomic-8x8[engines=3x2,link=8,buffer=5]",
    "atomic-8x8[engines=4x4,link=16,buffer=5,dram=64]",
    "atomic-8x8[engines=4x2,link=8,buffer=5,ports=corners]",
    "atomic-8x8[engines=2x3,link=16,buffer=5,ports=left]",
    "set-edge-4x4",
)


def _network(rng: random.Random, layers: int, pixels: int = 1) -> Network:
    """Layers in a row that multiply each weight once for every pixel."""
    made: list[Layer] = []
    links: list[Link] = []
    channels = rng.choice([64, 128, 256])
    for i in range(layers):
        width = rng.choice([64, 128, 200, 256])
        operator = conv2d(k=width, c=channels, r=1, s=1, h=pixels, w=pixels)
        made.append(Layer(f"l{i}", operator, "test"))
        if i:
            size = channels * pixels * pixels
            links.append(Link(f"l{i - 1}", f"l{i}", operator.inputs[0].name, f"l{i - 1}", size))
        channels = width
    return Network("random", made, links)


def _planned(seed: int) -> tuple[TiledProblem, AtomicDag, Int32s, Int32s, Int32s]:
    """A random problem with atoms in a quick order on the whole machine or a part of it."""
    rng = random.Random(seed)
    machine = load_tiled_machine(rng.choice(MACHINES))
    problem = TiledProblem(
        _network(rng, rng.randint(1, 4), rng.choice([1, 1, 2])),
        machine,
        tiled_objective("edp"),
        batch=rng.choice([1, 1, 2]),
        partial_sums=rng.choice(["chain", "reduction"]),
    )
    sizes = [
        AtomSize(2, rng.choice([1, 2]), rng.choice([16, 48, 64]), rng.choice([8, 16])) for _ in problem.units
    ]
    dag = problem.dag(sizes)
    along = rng.choice(regions(machine)).along
    if rng.random() < 0.3:
        engine, step = list_order(dag, machine, along=along)
    else:
        engine, step = layer_sequential(dag, machine, waves=rng.random() < 0.5, along=along)
    return problem, dag, engine, step, along


def _weights(dag: AtomicDag, unit: int) -> set[int]:
    """The blocks of a layer's weights."""
    tasks = range(int(dag.base[unit]), int(dag.base[unit + 1]))
    return {int(block) for task in tasks for block in dag.reads_of(task) if dag.block_kind[block] == WEIGHTS}


@pytest.mark.parametrize("held", [0.0, 0.3, module.HELD])
@pytest.mark.parametrize("seed", range(effort(40)))
def test_plans_stay_legal_and_a_second_time_changes_nothing(
    seed: int, held: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Atoms that move lie beside ports, all others where they were, each after what it reads."""
    monkeypatch.setattr(module, "HELD", held)
    problem, dag, engine, step, along = _planned(seed)
    machine = problem.machine
    given = engine.copy(), step.copy()
    moved = beside_ports(dag, machine, engine, step, along)
    assert (engine == given[0]).all()
    assert (step == given[1]).all()
    if moved is None:
        return
    placed, turn = moved
    result = problem.evaluate(dag, complete(dag, machine, placed, turn))  # which raises where it is not legal
    assert result.cycles > 0
    ports = {y * machine.width + x for x, y in machine.dram_ports}
    assert set(placed[placed != engine].tolist()) <= ports & set(along.tolist())
    assert beside_ports(dag, machine, placed, turn, along) is None


def test_some_layers_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """The random problems are no idle ones."""
    monkeypatch.setattr(module, "HELD", 0.3)
    moved = 0
    for seed in range(40):
        problem, dag, engine, step, along = _planned(seed)
        moved += beside_ports(dag, problem.machine, engine, step, along) is not None
    assert moved > 5


@pytest.mark.parametrize("seed", range(effort(40)))
def test_layers_that_wait_are_those_of_a_plain_count(seed: int) -> None:
    """The fewest engines that multiply as fast as weights arrive, with even tiles, and soonest."""
    _, dag, *_ = _planned(seed)
    rng = random.Random(seed)
    rate, engines = rng.choice([0.5, 8.0, 64.0]), range(rng.randint(1, 3), rng.randint(3, 9))
    work, weights = module._layers(dag)
    for unit in range(len(dag.units)):
        cycles = int(dag.cycles[dag.unit == unit].sum())
        size = int(sum(dag.block_bytes[block] for block in _weights(dag, unit)))
        assert (work[unit], weights[unit]) == (cycles, size)
        tiles = len(dag.tilings[unit].channels) - 1
        fit = [
            n
            for n in engines
            if cycles / n <= size / rate and tiles / n >= module.EVEN * math.ceil(tiles / n)
        ]
        ports = rng.choice([0.7, 1.5, 4.0])
        told = module._fewest(dag, unit, work[unit] * rate, weights[unit], ports, engines)
        late = {n: max(1.0, ports * math.ceil(tiles / n) / tiles) for n in fit}
        assert told == next((n for n in fit if late[n] == min(late.values())), 0)


def _machine(buffer: int) -> TiledMachine:
    """Three engines in a row, of which one takes in all that DRAM sends."""
    return load_tiled_machine(f"atomic-8x8[engines=3x1,link=8,dram=8,buffer={buffer}]")


@pytest.mark.parametrize("parts", [1, 2])
def test_no_places_of_few_atoms_take_less_energy(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all ways to deal the tiles of a layer out over the engines."""
    monkeypatch.setattr(module, "HELD", 0.0)
    network = Network("layer", [Layer("l", conv2d(k=64, c=64, r=1, s=1, h=1, w=1), "test")], [])
    machine = _machine(8)
    problem = TiledProblem(network, machine, tiled_objective("edp"))
    dag = problem.dag([AtomSize(1, 1, 64 // parts, 16)])
    engine, step = layer_sequential(dag, machine)
    energies = {}
    for places in product(range(machine.engines), repeat=4):
        engines = np.repeat(np.array(places, dtype=np.int32), parts)
        plan = complete(dag, machine, engines, np.arange(dag.tasks))
        energies[places] = problem.evaluate(dag, plan).energy.total
    moved = beside_ports(dag, machine, engine, step, zigzag(machine))
    assert moved is not None
    plan = complete(dag, machine, *moved)
    assert problem.evaluate(dag, plan).energy.total == pytest.approx(min(energies.values()))
    assert max(energies.values()) > 1.01 * min(energies.values())


def test_weights_that_come_before_their_layer_stay_spread() -> None:
    """Nothing comes before the first layer; before others what DRAM has time for, and buffers hold."""
    # a layer that leaves DRAM 10,666 bytes of time, one of 4,096 bytes, one of 32,768, and one more
    shapes = [(16, 16, 64), (64, 64, 1), (512, 64, 1), (64, 512, 1)]
    layers = [
        Layer(f"l{i}", conv2d(k=k, c=c, r=1, s=1, h=side, w=side), "test")
        for i, (k, c, side) in enumerate(shapes)
    ]
    machine = _machine(8)

    def tasks_that_move(first: int) -> tuple[AtomicDag, Int32s]:
        """Of a network from a layer on: those that have another round."""
        problem = TiledProblem(Network("row", layers[first:], []), machine, tiled_objective("edp"))
        dag = problem.dag([AtomSize(8, 8, 64, 16)] * len(problem.units))
        engine, step = layer_sequential(dag, machine)
        moved = beside_ports(dag, machine, engine, step, zigzag(machine))
        assert moved is not None
        assert (moved[0][step < moved[1]] == 0).all()
        return dag, np.flatnonzero(moved[1] != step)

    dag, tasks = tasks_that_move(0)
    stay = (10_666 - 4096) // (64 * 16)
    # rounds of three engines stay as a whole; the first atom that moves has the round that it had
    assert tasks[0] == dag.base[2] + stay - stay % 3 + 1
    dag, tasks = tasks_that_move(2)
    assert tasks[0] == 1
    assert dag.base[1] in tasks


def test_weights_that_all_fit_beside_long_work_stay_spread() -> None:
    """All atoms stay where buffers hold all weights and the work takes 40 % as long as these, or more."""
    for buffer, side, first, stay in (
        (8, 64, 0, True),
        (5, 64, 0, False),
        (8, 64, 1, False),
        (8, 36, 0, False),
    ):
        layers = [
            Layer("work", conv2d(k=16, c=16, r=1, s=1, h=side, w=side), "test"),
            Layer("weights", conv2d(k=256, c=64, r=1, s=1, h=1, w=1), "test"),
        ]
        machine = _machine(buffer)
        problem = TiledProblem(Network("row", layers[first:], []), machine, tiled_objective("edp"))
        dag = problem.dag([AtomSize(8, 8, 64, 16)] * len(problem.units))
        engine, step = layer_sequential(dag, machine)
        assert (beside_ports(dag, machine, engine, step, zigzag(machine)) is None) == stay
