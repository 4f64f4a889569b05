"""The atomic DAG against the dependencies of single elements, found loop iteration by loop iteration."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from effort import effort

from tilewright.formulation.scheduling.tiled.build import build_dag
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import INPUT, WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, Tiling, tiling
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

ENGINE = load_tiled_machine("atomic-8x8").engine


def chain(*operators: Operator) -> Network:
    """Layers ``a``, ``b``, ... one after the other, the first one's operand from DRAM."""
    layers = [Layer(name, operator, "test") for name, operator in zip("abcdef", operators, strict=False)]
    links = [
        Link(a.name, b.name, b.operator.inputs[0].name, a.name, 1) for a, b in itertools.pairwise(layers)
    ]
    return Network("chain", layers, links)


def random_layer(rng: random.Random, channels: int, size: tuple[int, int]) -> Operator:
    """A small convolution, depthwise or grouped convolution or pooling of an image."""
    kernel = rng.choice([1, 2, 3])
    stride, dilation = rng.choice([1, 2, 3]), 2 if rng.random() < 0.3 and 2 * kernel <= min(size) + 1 else 1
    pad = rng.randint(0, kernel // 2)
    window = {"r": kernel, "s": rng.choice([1, kernel]), "stride": stride, "dilation": dilation}
    h, w = size
    shape = {"h": h, "w": w, "pad": (pad, 0)}
    kind = rng.choice(["conv", "depthwise", "grouped", "pool"])
    if kind == "pool":
        return pool2d(c=channels, **window, **shape)
    groups = {"conv": 1, "depthwise": channels, "grouped": 2}[kind]
    return conv2d(k=groups * rng.randint(1, 3), c=channels, groups=groups, **window, **shape)


def output_size(operator: Operator) -> tuple[int, tuple[int, int]]:
    """Channels and (rows, columns) of a result."""
    b = operator.bounds
    return b.get("G", 1) * b.get("K", b["C"] if operator.kind == "pool" else 1), (b["P"], b["Q"])


def begun_anywhere(rng: random.Random, operator: Operator, cuts: Tiling) -> Tiling:
    """The same tiling with chains of sums that begin with any of their parts."""
    if not operator.is_mac:
        return cuts
    return replace(cuts, begins=tuple(rng.randrange(cuts.divisions) for _ in range(cuts.boxes)))


def brute_reads(
    operator: Operator, box: tuple[tuple[int, int], ...]
) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Operand elements (padded coordinates) and weights that the results of a box need, one by one."""
    bounds = operator.bounds
    names = list(bounds)
    _, channels, rows, columns, part = box
    # parts are of a sum over channels, or of the rows of a window that squeezes a map
    divided = "C" if operator.is_mac else "R" if shape_of(operator).parts > 1 else ""
    operand: set[tuple[int, ...]] = set()
    weights: set[tuple[int, ...]] = set()
    for values in itertools.product(*(range(bounds[name]) for name in names)):
        at = dict(zip(names, values, strict=True))
        channel = at["C"] if operator.kind == "pool" else at.get("G", 0) * bounds.get("K", 1) + at.get("K", 0)
        inside = channels[0] <= channel < channels[1] and rows[0] <= at["P"] < rows[1]
        if not inside or not columns[0] <= at["Q"] < columns[1]:
            continue
        if divided in at and not part[0] <= at[divided] < part[1]:
            continue
        for tensor in operator.inputs:
            index = tuple(sum(t.stride * at[t.dim] for t in axis.terms) for axis in tensor.axes)
            (operand if tensor.role.value == "inputs" else weights).add(index)
    return operand, weights


def check_unit(dag: AtomicDag, operator: Operator, unit: int, made: Operator) -> None:
    """Compare the reads of every atom of a unit with those found one by one."""
    producer = next(i for i, entry in enumerate(dag.units) if entry.layer.operator is made)
    channels, (height, width) = output_size(made)
    owner = np.zeros((channels, height, width), dtype=np.int64)
    for task in range(int(dag.base[producer]), int(dag.base[producer + 1])):
        if (task - int(dag.base[producer])) % int(dag.slots[producer]) == int(dag.slots[producer]) - 1:
            _, c, h, w, _ = dag.box(task)
            owner[c[0] : c[1], h[0] : h[1], w[0] : w[1]] = task
    tensor = operator.inputs[0]
    before = [
        max(0, axis.size - size) // 2 for axis, size in zip(tensor.axes[-2:], (height, width), strict=True)
    ]
    grouped = len(tensor.axes) == 5
    for task in range(int(dag.base[unit]), int(dag.base[unit + 1])):
        operand, weights = brute_reads(operator, dag.box(task))
        expected: dict[int, int] = defaultdict(int)
        for index in operand:
            channel = index[1] * operator.bounds.get("C", 1) + index[2] if grouped else index[1]
            h, w = index[-2] - before[0], index[-1] - before[1]
            if 0 <= h < height and 0 <= w < width:
                expected[int(owner[channel, h, w])] += 1
        bytes_by_parent: dict[int, int] = defaultdict(int)
        for block in dag.reads_of(task):
            parent = int(dag.block_parent[block])
            if parent >= 0 and int(dag.unit[parent]) != unit:
                bytes_by_parent[parent] += int(dag.block_bytes[block])
        assert dict(bytes_by_parent) == dict(expected)
        stored = [int(dag.block_bytes[b]) for b in dag.reads_of(task) if dag.block_kind[b] == WEIGHTS]
        assert sum(stored) == len(weights)


@pytest.mark.parametrize("seed", range(effort(16)))
def test_halos_are_exact_on_random_layers(seed: int) -> None:
    """Two random layers, cut at random: every atom reads exactly the elements that its loops touch."""
    rng = random.Random(seed)
    channels, size = rng.choice([2, 4, 6]), (rng.randint(5, 8), rng.randint(5, 7))
    first = random_layer(rng, channels, size)
    made, shape = output_size(first)
    while made % 2 or min(shape) < 3:
        first = random_layer(rng, channels, size)
        made, shape = output_size(first)
    second = random_layer(rng, made, shape)
    units = units_of(chain(first, second))
    cuts = [
        tiling(unit, AtomSize(rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 4)), 1)
        for unit in units
    ]
    begun = [begun_anywhere(rng, unit.layer.operator, cut) for unit, cut in zip(units, cuts, strict=True)]
    for sums, tilings in (("chain", cuts), ("chain", begun), ("reduction", cuts)):
        dag = build_dag(units, tilings, ENGINE, partial_sums=sums)
        parts = [len(cut.parts) - 1 for cut in cuts]
        if sums == "reduction" and parts[1] > 1:
            continue  # the reduction has no loops of its own to compare with
        check_unit(dag, second, 1, first)
        assert dag.macs == sum(operator.macs for operator in (first, second) if operator.is_mac)


def test_strided_pointwise_reads_a_quarter() -> None:
    """A 1x1 convolution of stride 2 reads every second row and column, not their bounding box."""
    first = conv2d(k=4, c=4, r=1, s=1, h=8, w=8)
    second = conv2d(k=4, c=4, r=1, s=1, h=8, w=8, stride=2)
    units = units_of(chain(first, second))
    dag = build_dag(units, [tiling(u, AtomSize(8, 8, 4, 4), 1) for u in units], ENGINE)
    (block,) = (b for b in dag.reads_of(1) if dag.block_parent[b] == 0)
    assert dag.block_bytes[block] == 4 * 4 * 4


def test_partial_sums_have_four_bytes_and_follow_each_other() -> None:
    """A chain of parts passes on sums of four bytes; independent parts meet in a reduction."""
    units = units_of(chain(conv2d(k=4, c=8, r=1, s=1, h=2, w=2)))
    cuts = [tiling(u, AtomSize(2, 2, 2, 4), 1) for u in units]
    dag = build_dag(units, cuts, ENGINE)
    assert dag.tasks == 4
    assert list(dag.block_bytes[:4]) == [64, 64, 64, 16]
    assert [int(dag.block_parent[dag.reads_of(t)].max()) for t in range(1, 4)] == [0, 1, 2]
    split = build_dag(units, cuts, ENGINE, partial_sums="reduction")
    assert split.tasks == 5
    assert sorted(split.reads_of(4)) == [0, 1, 2, 3]
    assert split.macs == dag.macs == 4 * 8 * 4
    assert split.is_output[4]
    assert not split.is_output[:4].any()


def test_a_chain_begins_with_any_of_its_parts() -> None:
    """Costs, weights and operands go with the parts; the sum is passed on in the order of the tasks, and the
    last of them has the result and reads what meets it.
    """
    units = units_of(chain(conv2d(k=4, c=10, r=1, s=1, h=2, w=2)))
    cuts = Tiling((0, 1), (0, 2, 4), (0, 2), (0, 2), (0, 1, 4, 10))
    plain, dag = (build_dag(units, [replace(cuts, begins=begins)], ENGINE) for begins in ((), (0, 2)))
    assert [dag.box(task)[4] for task in range(6)] == [(0, 1), (1, 4), (4, 10), (4, 10), (0, 1), (1, 4)]
    assert list(dag.operations[3:]) == [int(plain.operations[3 + part]) for part in (2, 0, 1)]
    assert list(dag.block_bytes[:6]) == list(plain.block_bytes[:6])
    assert list(dag.is_output) == list(plain.is_output)
    for task in (4, 5):
        assert task - 1 in dag.reads_of(task)
    network = units_of(residual())
    sums = [tiling(unit, AtomSize(3, 6, 2, 4), 1) for unit in network]
    turned = [sums[0], replace(sums[1], begins=(1,) * sums[1].boxes)]
    last = int(build_dag(network, sums, ENGINE).base[1]) + 1
    met = [
        [b for b in build_dag(network, cut, ENGINE).reads_of(last) if b < last - 1] for cut in (sums, turned)
    ]
    assert len(met[0]) == 1
    assert met[0][0] in met[1]


@pytest.mark.parametrize("begins", [(0,), (0, 3), (-1, 0)])
def test_begins_of_chains_are_parts_of_every_sum(begins: tuple[int, ...]) -> None:
    """There is one for each box of results, and each is the number of a part."""
    units = units_of(chain(conv2d(k=4, c=10, r=1, s=1, h=2, w=2)))
    cuts = Tiling((0, 1), (0, 2, 4), (0, 2), (0, 2), (0, 1, 4, 10), begins=begins)
    with pytest.raises(ValueError, match="the first of 3 parts of each of 2 sums"):
        build_dag(units, [cuts], ENGINE)
    with pytest.raises(ValueError, match="only the parts of a chain"):
        build_dag(units, [replace(cuts, begins=(0, 1))], ENGINE, partial_sums="reduction")


def residual() -> Network:
    """Two convolutions and their sum with a shortcut."""
    convolution = conv2d(k=4, c=4, r=3, s=3, h=6, w=6, pad=1)
    layers = [
        Layer("a", convolution, "test"),
        Layer("b", convolution, "test"),
        Layer("add", elementwise(shape=(1, 4, 6, 6)), "test"),
    ]
    links = [
        Link("a", "b", "I", "a", 144),
        Link("b", "add", "I0", "b", 144),
        Link("a", "add", "I1", "a", 144),
    ]
    return Network("residual", layers, links)


def test_fused_sum_reads_the_shortcut_with_the_last_part() -> None:
    """A fused element-wise layer makes no atoms; its other operand is read where the sum is finished."""
    network = residual()
    units = units_of(network)
    assert [unit.name for unit in units] == ["a", "b"]
    cuts = [tiling(u, AtomSize(3, 6, 2, 4), 1) for u in units]
    dag = build_dag(units, cuts, ENGINE)
    first, last = (int(dag.base[1]), int(dag.base[1]) + 1)
    halo = {int(dag.block_bytes[b]) for b in dag.reads_of(first) if int(dag.unit[dag.block_parent[b]]) == 0}
    assert halo == {2 * 3 * 6, 2 * 1 * 6}
    whole = [b for b in dag.reads_of(last) if b < dag.tasks and int(dag.unit[b]) == 0]
    assert len(whole) == 1
    assert len(units_of(network, fuse=False)) == 3


def test_batch_is_one_graph_with_shared_weights() -> None:
    """Samples have atoms of their own and read the same blocks of weights."""
    units = units_of(chain(conv2d(k=4, c=4, r=1, s=1, h=4, w=4)))
    dag = build_dag(units, [tiling(units[0], AtomSize(4, 4, 4, 2), 3)], ENGINE, batch=3)
    assert dag.tasks == 6
    assert int((dag.block_kind == WEIGHTS).sum()) == 2
    assert int((dag.block_kind == INPUT).sum()) == 3
    assert [dag.box(t)[0] for t in (0, 2, 4)] == [(0, 1), (1, 2), (2, 3)]


def test_group_tasks_have_the_borders_of_their_shares() -> None:
    """A tiling by even shares, as SET's partitions have it, is taken as it is."""
    unit = units_of(chain(conv2d(k=10, c=4, r=1, s=1, h=7, w=7)))[0]
    tiling = Tiling((0, 1), (0, 3, 5, 8, 10), (0, 4, 7), (0, 7), (0, 4))
    assert tiling.channels == (0, 3, 5, 8, 10)
    dag = build_dag([unit], [tiling], ENGINE)
    assert dag.tasks == 8
    assert dag.macs == unit.layer.operator.macs


@pytest.mark.parametrize(
    "model",
    ["mobilenet-v2", "resnet50"]
    + [
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("inception-v3", "efficientnet-b0", "googlenet", "bert-base", "unet", "nasnet-a-large")
    ],
)
def test_operations_of_all_atoms_are_those_of_the_network(model: str) -> None:
    """No multiply-accumulate is lost or done twice, whatever the network's wiring."""
    network = resolve_model(model, 1)
    units = units_of(network)
    dag = build_dag(units, [tiling(u, AtomSize(9, 17, 96, 48), 1) for u in units], ENGINE)
    assert dag.macs == network.macs
    starts, producers = dag.edges
    reader = np.repeat(np.arange(dag.tasks), np.diff(starts))
    assert (producers < reader).all()


def test_bad_input_is_one_line() -> None:
    """A batch of 0, a network of several samples and an atom that fits no buffer are told in one
    line each."""
    machine = load_tiled_machine("atomic-8x8[buffer=1]")
    network = resolve_model("resnet50", 1)
    makespan = tiled_objective("makespan")
    with pytest.raises(InputError, match="batch: expected at least 1, got 0"):
        TiledProblem(network, machine, makespan, batch=0)
    with pytest.raises(InputError, match="expected a network of batch 1, got 2"):
        TiledProblem(resolve_model("resnet50", 2), machine, makespan)
    problem = TiledProblem(network, machine, makespan)
    with pytest.raises(InputError, match=r"needs \d+ bytes, a buffer has 1024"):
        problem.dag([AtomSize(14, 14, 64, 32)] * len(problem.units))


@pytest.mark.parametrize(("h", "w", "pad"), [(4, 5, (1, 0)), (5, 4, (0, 1)), (7, 5, (2, 1)), (6, 6, (1, 1))])
def test_inputs_of_windows_with_uneven_padding(h: int, w: int, pad: tuple[int, int]) -> None:
    """An atom reads the rows and columns of the network's input that its windows touch, without padding."""
    operator = conv2d(k=1, c=3, r=2 * pad[0] + 1, s=2 * pad[1] + 1, h=h, w=w, pad=pad)
    links = [Link(None, "a", "I", "x", 3 * h * w)]
    units = units_of(Network("one", [Layer("a", operator, "test")], links))
    for rows in (1, 2, h):
        dag = build_dag(units, [tiling(units[0], AtomSize(rows, w, 3, 1), 1)], ENGINE)
        for task in range(dag.tasks):
            low, high = dag.box(task)[2]
            touched = min(high + pad[0], h) - max(low - pad[0], 0)
            read = [int(dag.block_bytes[block]) for block in dag.reads_of(task)]
            kinds = [int(dag.block_kind[block]) for block in dag.reads_of(task)]
            given = sum(size for size, kind in zip(read, kinds, strict=True) if kind == INPUT)
            assert given == 3 * touched * w
