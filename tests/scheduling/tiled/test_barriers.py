"""Layers that are needed as a whole, against the ancestors of every atom of random divisions."""

from __future__ import annotations

import random

import pytest
from tiled_plans import random_plan

from tilewright.formulation.scheduling.tiled.coordinates import COLUMN, ROW, loop_ranges, shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.overlap import operand_axes, positions_read
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, Tiling
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled import barriers as barriers_module
from tilewright.solvers.scheduling.tiled.barriers import barriers, channels_before
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d, depthwise_conv2d
from tilewright.workloads.mapping.matrices import fully_connected
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

MACHINE = "atomic-2x2[array=4x4]"


def random_image_network(rng: random.Random) -> Network:
    """Small images through convolutions, poolings, sums, concatenations, flattening and dense layers."""
    layers: list[Layer] = []
    links: list[Link] = []
    made: list[tuple[str, int, int]] = []

    def add(operator: Operator, sources: list[tuple[str, str, int | None, tuple[str, ...]]]) -> str:
        name = f"l{len(layers)}"
        layers.append(Layer(name, operator, "test"))
        links.extend(
            Link(source, name, operand, source, 1, at, moves) for source, operand, at, moves in sources
        )
        return name

    start = conv2d(k=rng.randint(1, 3), c=2, r=1, s=1, h=4, w=4)
    made.append((add(start, []), start.bounds["K"], 4))
    for _ in range(rng.randint(2, 5)):
        name, channels, side = rng.choice(made[-2:])
        kind = rng.choice(["conv", "conv", "depthwise", "pool", "sum", "concat", "flat", "strided"])
        like = [
            made_layer for made_layer in made if made_layer[1:] == (channels, side) and made_layer[0] != name
        ]
        beside = [made_layer for made_layer in made if made_layer[2] == side and made_layer[0] != name]
        width = rng.randint(1, 3)
        if kind == "sum" and like:
            operator = elementwise(shape=(1, channels, side, side))
            first, second = (tensor.name for tensor in operator.inputs)
            new = add(operator, [(name, first, 0, ()), (like[0][0], second, 0, ())])
            made.append((new, channels, side))
        elif kind == "concat" and beside:
            other, more, _ = rng.choice(beside)
            operator = conv2d(k=width, c=channels + more, r=3, s=3, h=side, w=side, pad=1)
            new = add(operator, [(name, "I", 0, ("Concat",)), (other, "I", channels, ("Concat",))])
            made.append((new, width, side))
        elif kind == "flat":
            operator = fully_connected(k=width, c=channels * side * side)
            new = add(operator, [(name, operator.inputs[0].name, None, ("Flatten",))])
            made.append((new, width, 1))
        else:
            reach = min(3, side) | 1 if side > 1 else 1
            window = {"r": reach, "s": reach, "h": side, "w": side, "pad": reach // 2}
            operators: dict[str, Operator] = {
                "depthwise": depthwise_conv2d(c=channels, **window),
                "pool": pool2d(c=channels, r=side, s=side, h=side, w=side),
                "strided": conv2d(k=width, c=channels, r=1, s=1, h=side, w=side, stride=min(2, side)),
            }
            operator = operators.get(kind, conv2d(k=width, c=channels, **window))
            new = add(operator, [(name, operator.inputs[0].name, 0, ())])
            count = channels if kind in ("depthwise", "pool") else width
            made.append((new, count, operator.bounds["P"]))
    return Network("image", layers, links)


def ancestors(dag: AtomicDag) -> list[set[int]]:
    """Per task all tasks that it depends on."""
    starts, producers = dag.edges
    ancestors: list[set[int]] = []
    for task in range(dag.tasks):
        direct = set(producers[starts[task] : starts[task + 1]].tolist())
        ancestors.append(direct.union(*(ancestors[parent] for parent in direct)))
    return ancestors


def random_size(rng: random.Random, problem: TiledProblem) -> list[AtomSize | Tiling]:
    """Single results and parts of sums for most layers, whole layers for some."""
    sizes: list[AtomSize | Tiling] = []
    for unit in problem.units:
        c, h, w = shape_of(unit.layer.operator).sizes
        whole = rng.random() < 0.3
        sizes.append(AtomSize(h, w, 64, c) if whole else AtomSize(*rng.choice([(1, 1, 1, 1), (2, 1, 2, 1)])))
    return sizes


def check(seed: int) -> int:
    """Every atom of a layer depends on all atoms of its barriers; how many of those there are."""
    rng = random.Random(seed)
    problem = TiledProblem(
        random_image_network(rng),
        load_tiled_machine(MACHINE),
        tiled_objective("makespan"),
        batch=rng.choice([1, 1, 2]),
        fuse=rng.random() < 0.5,
        partial_sums=rng.choice(["chain", "reduction"]),  # type: ignore[arg-type]
    )
    kinds = (False, True)
    before = [barriers(problem.units, finished=finished) for finished in kinds]
    channels = [channels_before(problem.units, finished=finished) for finished in kinds]
    dag = problem.unchecked_dag(random_size(rng, problem))
    known, stored = ancestors(dag), stored_blocks(dag)
    for task in range(dag.tasks):
        (low, _), *_ = dag.box(task)
        unit = int(dag.unit[task])
        finishes = int((task + 1 - dag.base[unit]) % dag.slots[unit] == 0)
        for earlier in before[finishes][unit]:
            for other in range(int(dag.base[earlier]), int(dag.base[earlier + 1])):
                (begin, end), *_ = dag.box(other)
                assert not begin <= low < end or other in known[task]
        read = set().union(*(stored[other] for other in known[task]))
        for earlier in channels[finishes][unit]:
            tasks = range(int(dag.base[earlier]), int(dag.base[earlier + 1]))
            assert read >= set().union(*(stored[other] for other in tasks))
    assert all(map(frozenset.issubset, before[0], channels[0]))
    return sum(map(len, before[0]))


def stored_blocks(dag: AtomicDag) -> list[set[int]]:
    """Per task the blocks of weights that it reads."""
    return [
        {block for block in dag.reads_of(task).tolist() if dag.block_kind[block] == WEIGHTS}
        for task in range(dag.tasks)
    ]


def test_every_atom_waits_for_all_of_its_barriers() -> None:
    assert sum(check(seed) for seed in range(12)) > 12


@pytest.mark.slow
def test_every_atom_of_many_networks_waits_for_all_of_its_barriers() -> None:
    assert sum(check(seed) for seed in range(100, 1100)) > 1000


def test_a_dense_layer_waits_for_all_but_the_last_layers_channels() -> None:
    """A part of a sum behind a flattening reads one channel of the last convolution, that one all before."""
    layers = [
        Layer("a", conv2d(k=4, c=2, r=3, s=3, h=6, w=6, pad=1), "test"),
        Layer("b", conv2d(k=4, c=4, r=3, s=3, h=6, w=6, pad=1), "test"),
        Layer("c", conv2d(k=4, c=4, r=3, s=3, h=6, w=6, pad=1), "test"),
        Layer("d", fully_connected(k=5, c=144), "test"),
        Layer("e", fully_connected(k=5, c=5), "test"),
    ]
    links = [
        Link("a", "b", "I", "a", 144),
        Link("b", "c", "I", "b", 144),
        Link("c", "d", "A", "c", 144, None, ("Flatten",)),
        Link("d", "e", "A", "d", 5),
    ]
    problem = TiledProblem(
        Network("dense", layers, links), load_tiled_machine(MACHINE), tiled_objective("edp")
    )
    waits_for = barriers(problem.units)
    assert [sorted(earlier) for earlier in waits_for] == [[], [], [], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_late_layers_cannot_all_come_before_they_begin(seed: int) -> None:
    """Behind a barrier of 8192 cycles on two engines, more weights than fit all buffers."""
    machine = load_tiled_machine("atomic-2x2[array=16x16,engines=2x1,buffer=24,link=32,dram=32]")
    layers = [
        Layer("a", conv2d(k=128, c=64, r=1, s=1, h=16, w=16), "test"),
        Layer("b", conv2d(k=16, c=128, r=1, s=1, h=16, w=16), "test"),
        Layer("c", pool2d(c=16, r=16, s=16, h=16, w=16), "test"),
        Layer("d", fully_connected(k=8192, c=16), "test"),
    ]
    links = [
        Link("a", "b", "I", "x", 128 * 256),
        Link("b", "c", "I", "y", 16 * 256),
        Link("c", "d", "A", "z", 16, None, ("Flatten",)),
    ]
    problem = TiledProblem(Network("staged", layers, links), machine, tiled_objective("makespan"))
    bounds = size_bounds(problem)
    weights, chip, rate = 16 * 8192, 2 * 24 * 1024, 32
    assert barriers(problem.units)[3] == {0}
    assert bounds.cycles == bounds.staged == 8192 // 2 + (weights - chip) // rate
    rng = random.Random(seed)
    sizes = [
        AtomSize(4, 16, 16, 16),
        AtomSize(rng.choice([2, 4]), 16, 32, 16),
        AtomSize(1, 1, 64, rng.choice([8, 16])),
        AtomSize(1, 1, 16, rng.choice([64, 256])),
    ]
    dag = problem.dag(sizes)
    for _ in range(3):
        assert bounds.cycles <= problem.evaluate(dag, random_plan(rng, problem, dag)).cycles


def test_a_window_that_moves_reads_fewest_at_an_end() -> None:
    """Strides, dilations, paddings and crops at random, against all places of an atom.

    Windows may be wider than what they move along, so that in the middle they read nothing of it.
    """
    rng = random.Random(5)
    told = 0
    for _ in range(400):
        taps, dilation = rng.randint(1, 4), rng.randint(1, 3)
        reach = (taps - 1) * dilation
        side = rng.randint(1, 14)
        operator = conv2d(
            k=2, c=2, r=taps, s=taps, h=side, w=side, stride=rng.randint(1, 4), dilation=dilation,
            pad=rng.randint(max(0, -(-(reach + 1 - side) // 2)), max(taps, reach)),
        )  # fmt: skip
        tensor = operator.inputs[0]
        size = max(1, side + rng.choice([0, 0, -1, 2]))
        axes_of = operand_axes(operator, tensor, (2, size, size), 0, centred=(False, True, True))
        if axes_of is None:
            continue
        for axis in (ROW, COLUMN):
            operand, count = axes_of[axis], shape_of(operator).sizes[axis]
            ranges = [loop_ranges(operator, axis, at, at + 1) for at in range(count)]
            every = min(len(positions_read(operator, operand, size, these)) for these in ranges)
            nothing = (False, False, False, False)
            assert barriers_module._fewest(operator, operand, size, nothing) == every
            told += barriers_module._fewest_at_ends(operator, operand, size, [axis], {})
    assert told > 200
