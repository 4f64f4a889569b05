"""Reads behind reshaping, transposing, slicing and concatenation, against numpy that moves elements."""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from pydantic import ValidationError
from tests.onnx_models import FLOAT, model, node, numbers, value, weights
from tiled_plans import random_plan

import tilewright as tw
from tilewright.formulation.scheduling.tiled.build import build_dag
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, tiling
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.records.scheduling.tiled.files import parse_plan
from tilewright.report.records.scheduling.tiled.problem import NetworkRecord
from tilewright.solvers.scheduling.tiled.barriers import barriers
from tilewright.solvers.scheduling.tiled.joint_bounds import least_key
from tilewright.workloads.blueprint.assembly import Assembly
from tilewright.workloads.blueprint.pictures import convolution
from tilewright.workloads.linked_layers import linked_network
from tilewright.workloads.mapping.layer_text import linked_layers
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network
from tilewright.workloads.networks import mamba
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.scheduling.workload import Part
from tilewright.workloads.scheduling.workload import Workload as Networks
from tilewright.workloads.training import training_network

TOKENS, HEADS, WIDTH = 4, 2, 4
CHANNELS = HEADS * WIDTH
Moves = dict[tuple[str, str], tuple[str, np.ndarray]]
"""Per consumer and operand its producer, and which element of its result stands where; -1 for others."""


def attention() -> tuple[Network, Moves]:
    """Heads of attention as exporters write them."""
    nodes = [node("MatMul", f"x w{name}", name) for name in "qkv"]
    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        nodes += [
            node("Reshape", f"{name} heads", f"{name}r"),
            node("Transpose", f"{name}r", f"{name}t", perm=order),
        ]
    nodes += [
        node("MatMul", "qt kt", "scores"),
        node("Softmax", "scores", "shares", axis=-1),
        node("MatMul", "shares vt", "mix"),
        node("Transpose", "mix", "mt", perm=(0, 2, 1, 3)),
        node("Reshape", "mt joined", "mr"),
        node("MatMul", "mr wo", "y"),
    ]
    stored = [weights(f"w{name}", CHANNELS, CHANNELS) for name in "qkvo"]
    stored += [numbers("heads", [1, TOKENS, HEADS, WIDTH]), numbers("joined", [1, TOKENS, CHANNELS])]
    shape = (1, TOKENS, CHANNELS)
    network = load_onnx(
        model(nodes, [value("x", FLOAT, shape)], [value("y", FLOAT, shape)], stored), name="heads"
    )
    made = np.arange(prod(shape)).reshape(1, TOKENS, HEADS, WIDTH)
    square = np.arange(HEADS * TOKENS * TOKENS).reshape(HEADS, TOKENS, TOKENS)
    joined = np.arange(prod(shape)).reshape(HEADS, TOKENS, WIDTH).transpose(1, 0, 2)
    return network, {
        ("scores", "A"): ("q", made.transpose(0, 2, 1, 3)),
        ("scores", "B"): ("k", made.transpose(0, 2, 3, 1)),
        ("shares", "I"): ("scores", square),
        ("mix", "A"): ("shares", square),
        ("mix", "B"): ("v", made.transpose(0, 2, 1, 3)),
        ("y", "A"): ("mix", joined),
    }


def grouped() -> tuple[Network, Moves]:
    """Pairs of heads that share their keys and values, each pair one matrix of tokens."""
    pairs, shared = 2, CHANNELS // 2
    nodes = [node("MatMul", f"x w{name}", name) for name in "qkv"]
    for name, apart, order, together in (
        ("q", "heads", (0, 2, 3, 1, 4), "rows"),
        ("k", "few", (0, 2, 3, 1), ""),
        ("v", "few", (0, 2, 1, 3), ""),
    ):
        nodes.append(node("Reshape", f"{name} {apart}", f"{name}r"))
        nodes.append(node("Transpose", f"{name}r", f"{name}t", perm=order))
        if together:
            nodes.append(node("Reshape", f"{name}t {together}", f"{name}m"))
    nodes += [
        node("MatMul", "qm kt", "scores"),
        node("Softmax", "scores", "shares", axis=-1),
        node("MatMul", "shares vt", "mix"),
        node("Reshape", "mix apart", "ma"),
        node("Transpose", "ma", "mt", perm=(0, 3, 1, 2, 4)),
        node("Reshape", "mt joined", "mr"),
        node("MatMul", "mr wo", "y"),
    ]
    width = shared // HEADS
    stored = [weights(f"w{name}", CHANNELS, CHANNELS if name in "qo" else shared) for name in "qkvo"]
    stored += [
        numbers("heads", [1, TOKENS, HEADS, pairs, width]),
        numbers("few", [1, TOKENS, HEADS, width]),
        numbers("rows", [1, HEADS, pairs * TOKENS, width]),
        numbers("apart", [1, HEADS, pairs, TOKENS, width]),
        numbers("joined", [1, TOKENS, CHANNELS]),
    ]
    shape = (1, TOKENS, CHANNELS)
    network = load_onnx(
        model(nodes, [value("x", FLOAT, shape)], [value("y", FLOAT, shape)], stored), name="grouped"
    )
    queries = np.arange(TOKENS * CHANNELS).reshape(1, TOKENS, HEADS, pairs, width)
    few = np.arange(TOKENS * shared).reshape(1, TOKENS, HEADS, width)
    square = np.arange(HEADS * pairs * TOKENS * TOKENS).reshape(HEADS, pairs * TOKENS, TOKENS)
    mixed = np.arange(TOKENS * CHANNELS).reshape(HEADS, pairs, TOKENS, width)
    return network, {
        ("scores", "A"): ("q", queries.transpose(0, 2, 3, 1, 4)),
        ("scores", "B"): ("k", few.transpose(0, 2, 3, 1)),
        ("shares", "I"): ("scores", square),
        ("mix", "A"): ("shares", square),
        ("mix", "B"): ("v", few.transpose(0, 2, 1, 3)),
        ("y", "A"): ("mix", mixed.transpose(2, 0, 1, 3)),
    }


def cropped() -> tuple[Network, Moves]:
    """A convolution of another one's crop beside a third one, as U-Net has it."""
    nodes = [
        node("Conv", "x wa", "a", pads=[1, 1, 1, 1]),
        node("Slice", "a low high axes", "cut"),
        node("Conv", "x wb", "b"),
        node("Concat", "cut b", "both", axis=1),
        node("Conv", "both wc", "y"),
    ]
    stored = [weights("wa", 4, 2, 3, 3), weights("wb", 3, 2, 3, 3), weights("wc", 4, 7, 3, 3)]
    stored += [numbers("low", [2, 1]), numbers("high", [8, 7]), numbers("axes", [2, 3])]
    network = load_onnx(
        model(nodes, [value("x", FLOAT, (1, 2, 8, 8))], [value("y", FLOAT, (1, 4, 4, 4))], stored),
        name="crop",
    )
    crop = np.full((1, 7, 6, 6), -1)
    crop[:, :4] = np.arange(4 * 64).reshape(1, 4, 8, 8)[:, :, 2:8, 1:7]
    beside = np.full((1, 7, 6, 6), -1)
    beside[:, 4:] = np.arange(3 * 36).reshape(1, 3, 6, 6)
    return network, {("y", "I"): ("a", crop), ("y", "I2"): ("b", beside)}


def joined() -> tuple[Network, Moves]:
    """A convolution of two results beside each other, and a product of its last pixel."""
    net = Assembly("joined", 1)
    x = net.outside("x", (1, 2, 3, 3))
    both = convolution(net, x, 2, 3, "a").joined(1, convolution(net, x, 2, 3, "b"))
    pixels = convolution(net, both, 2, 3, "y").rearranged((1, 2, 9), (0, 2, 1), (1, 9, 2))
    net.project(pixels.part(1, 8, 1), 5, "z")
    first, second = np.full((1, 4, 5, 5), -1), np.full((1, 4, 5, 5), -1)
    first[:, :2, 1:4, 1:4] = np.arange(18).reshape(1, 2, 3, 3)
    second[:, 2:, 1:4, 1:4] = np.arange(18).reshape(1, 2, 3, 3)
    last = np.arange(18).reshape(2, 9).T[8:]
    return net.network(), {("y", "I"): ("a", first), ("y", "I2"): ("b", second), ("z", "A"): ("y", last)}


def selective() -> tuple[Network, Moves]:
    """The two branches of a block of Mamba, and the parts of what its scan reads."""
    net, tokens, inner, state = Assembly("mamba", 1), 3, 4, mamba.STATE
    mamba.mixer(net, net.outside("x", (1, tokens, inner // 2)), past=False)
    branches = np.arange(tokens * 2 * inner).reshape(tokens, 2 * inner)
    vectors = np.arange(tokens * (1 + 2 * state)).reshape(tokens, -1)
    whole = np.arange(tokens * inner).reshape(tokens, inner)
    window = np.full((1, inner, 1, tokens + 3), -1)
    window[0, :, 0, 3:] = branches[:, :inner].T
    moves = {
        ("convolution", "I"): ("branches", window),
        ("gated", "I0"): ("skip", whole),
        ("gated", "I1"): ("branches", branches[:, inner:]),
        ("step", "A"): ("vectors", vectors[:, :1]),
        ("entry", "S"): ("softplus", whole),
        ("entry", "U"): ("convolution_act", whole),
        ("entry", "I"): ("vectors", vectors[:, 1 : 1 + state]),
        ("mix", "H"): ("state", np.arange(whole.size * state).reshape(tokens, inner, state)),
        ("mix", "C"): ("vectors", vectors[:, 1 + state :]),
    }
    named = {(f"mixer.{to}", operand): (f"mixer.{by}", at) for (to, operand), (by, at) in moves.items()}
    return net.network(), named


def written() -> tuple[Network, Moves]:
    """Heads of attention as a file of layers has them, one operand transposed."""
    entries = [
        {"name": "k", "layer": f"matmul:B=2,M={TOKENS},N=3,K=5"},
        {"name": "v", "layer": f"matmul:B=2,M={TOKENS},N=3,K=5"},
        {"name": "scores", "layer": f"matmul:B=2,M=6,N={TOKENS},K=3"},
        {"name": "mix", "layer": f"matmul:B=2,M=6,N=3,K={TOKENS}", "reads": {"A": "scores", "B": "v"}},
        {"name": "turned", "layer": f"matmul:B=2,M={TOKENS},N=3,K=6"},
    ]
    entries[2]["reads"] = {"B": {"layer": "k", "axes": [0, 2, 1]}}
    entries[4]["reads"] = {"A": {"layer": "scores", "axes": [0, 2, 1]}, "B": {"layer": "mix", "rows": [2]}}
    layers, reads = linked_layers(entries, "heads")
    keys = np.arange(2 * TOKENS * 3).reshape(2, TOKENS, 3)
    square = np.arange(2 * 6 * TOKENS).reshape(2, 6, TOKENS)
    return linked_network("heads", layers, reads), {
        ("scores", "B"): ("k", keys.transpose(0, 2, 1)),
        ("mix", "A"): ("scores", square),
        ("mix", "B"): ("v", keys),
        ("turned", "A"): ("scores", square.transpose(0, 2, 1)),
        ("turned", "B"): ("mix", np.arange(2 * 6 * 3).reshape(2, 6, 3)),
    }


def written_windows() -> tuple[Network, Moves]:
    """Windows as a file of layers has them: padding on one side, and rows that a stride leaves unused."""
    entries = [
        {"name": "a", "layer": "conv:K=3,C=2,P=8,Q=6,R=1,S=1"},
        {"name": "causal", "layer": "conv:K=2,C=3,H=8,W=6,R=3,S=2,pad=2x1x0x0", "reads": {"I": "a"}},
        {"name": "late", "layer": "conv:K=2,C=3,H=8,W=6,R=3,S=2,pad=0x0x2x1", "reads": {"I": "a"}},
        {"name": "strided", "layer": "conv:K=2,C=3,P=3,Q=3,R=2,S=1,stride=3x2", "reads": {"I": "a"}},
    ]
    layers, reads = linked_layers(entries, "windows")
    image = np.arange(3 * 48).reshape(1, 3, 8, 6)
    none = {"constant_values": -1}
    return linked_network("windows", layers, reads), {
        ("causal", "I"): ("a", np.pad(image, ((0, 0), (0, 0), (2, 0), (1, 0)), **none)),
        ("late", "I"): ("a", np.pad(image, ((0, 0), (0, 0), (0, 2), (0, 1)), **none)),
        ("strided", "I"): ("a", image[:, :, :8, :5]),
    }


def trained() -> tuple[Network, Moves]:
    """What errors go backward through, from the products of attention to its softmax and on."""
    forward, moves = attention()
    square = moves["shares", "I"][1]
    return training_network(forward), {
        ("shares.error", "dO"): ("mix.error_A", square),
        ("shares.error", "I"): ("scores", square),
        ("scores.error_A", "dC"): ("shares.error", square),
        ("scores.error_A", "B"): moves["scores", "B"],
        ("scores.error_B", "dC"): ("shares.error", square),
        ("scores.error_B", "A"): moves["scores", "A"],
    }


def coordinates(operator: Operator, at: dict[str, int]) -> tuple[int, int, int]:
    """Channel, row and column of the result that an iteration adds to."""
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    spot = [0, 0, 0]
    for axis in operator.output.axes:
        (term,) = axis.terms
        along = {"K": 0, "G": 0, "C": 0, "Q": 2}.get(like[term.dim], 1)
        spot[along] = spot[along] * operator.bounds[term.dim] + at[term.dim]
    return spot[0], spot[1], spot[2]


def owners(dag: AtomicDag, unit: int) -> np.ndarray:
    """The task that finishes each element of a unit's result, in row-major order."""
    operator = dag.units[unit].layer.operator
    last = int(dag.slots[unit]) - 1
    tasks = [
        t
        for t in range(int(dag.base[unit]), int(dag.base[unit + 1]))
        if (t - int(dag.base[unit])) % (last + 1) == last
    ]
    names = [axis.terms[0].dim for axis in operator.output.axes]
    owner = []
    for values in itertools.product(*(range(operator.bounds[name]) for name in names)):
        spot = coordinates(operator, dict(zip(names, values, strict=True)))
        owner.append(
            next(
                t
                for t in tasks
                if all(low <= at < high for at, (low, high) in zip(spot, dag.box(t)[1:4], strict=True))
            )
        )
    return np.array(owner)


def expected(dag: AtomicDag, task: int, moves: Moves, made: dict[str, np.ndarray]) -> dict[int, int]:
    """Elements of every producing task that the loops of a task touch, one by one."""
    unit = int(dag.unit[task])
    layer = dag.units[unit].layer
    operator, part = layer.operator, shape_of(layer.operator).part
    box = dag.box(task)
    met: dict[tuple[str, str], set[int]] = defaultdict(set)
    names = list(operator.bounds)
    for values in itertools.product(*(range(operator.bounds[name]) for name in names)):
        at = dict(zip(names, values, strict=True))
        inside = all(
            low <= spot < high for spot, (low, high) in zip(coordinates(operator, at), box[1:4], strict=True)
        )
        if not inside or (part is not None and not box[4][0] <= at[part] < box[4][1]):
            continue
        for (consumer, operand), (producer, places) in moves.items():
            if consumer != layer.name.removeprefix("at_"):
                continue
            axes = operator.tensor(operand.rstrip("2")).axes
            index = tuple(sum(t.stride * at[t.dim] for t in axis.terms) for axis in axes)
            place = int(places.reshape([axis.size for axis in axes])[index])
            if place >= 0:
                met[operand, producer].add(place)
    counts: dict[int, int] = defaultdict(int)
    for (_, producer), elements in met.items():
        for element in elements:
            counts[int(made[producer][element])] += 1
    return dict(counts)


def cut(network: Network, rng: random.Random) -> AtomicDag:
    """The network's atoms in random sizes."""
    units = units_of(network, fuse=False)
    sizes = [AtomSize(*(rng.randint(1, 6) for _ in range(4))) for _ in units]
    return build_dag(
        units,
        [tiling(unit, size, 1) for unit, size in zip(units, sizes, strict=True)],
        load_tiled_machine("atomic-2x2").engine,
    )


def read_from(dag: AtomicDag, task: int) -> dict[int, int]:
    """Bytes that an atom reads of each atom of another layer."""
    size: dict[int, int] = defaultdict(int)
    for block in dag.reads_of(task):
        parent = int(dag.block_parent[block])
        if parent >= 0 and dag.unit[parent] != dag.unit[task]:
            size[parent] += int(dag.block_bytes[block])
    return dict(size)


EXACT = [attention, cropped, joined, selective, trained, written, written_windows]
"""Networks whose atoms read nothing but what they need."""


@pytest.mark.parametrize("made", EXACT)
@pytest.mark.parametrize("seed", range(3))
def test_reads_behind_movement_are_exact(made: Callable[[], tuple[Network, Moves]], seed: int) -> None:
    """Atoms of random sizes read exactly the elements that their loops touch, of the tasks that make them."""
    network, moves = made()
    dag = cut(network, random.Random(seed))
    layers = {unit.layer.name.removeprefix("at_"): index for index, unit in enumerate(dag.units)}
    made_by = {producer: owners(dag, layers[producer]) for producer, _ in moves.values()}
    readers = {layers[consumer] for consumer, _ in moves}
    for task in range(dag.tasks):
        if int(dag.unit[task]) in readers:
            assert read_from(dag, task) == expected(dag, task, moves, made_by)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5])
def test_reads_of_an_axis_along_several_coordinates(rows: int, parts: int) -> None:
    """Tiles that end where runs do read exactly what their loops touch; others no less of it."""
    network, moves = grouped()
    units = units_of(network, fuse=False)
    sizes = [AtomSize(rows, 2, parts, 3) for _ in units]
    tilings = [tiling(unit, size, 1) for unit, size in zip(units, sizes, strict=True)]
    dag = build_dag(units, tilings, load_tiled_machine("atomic-2x2").engine)
    layers = {unit.layer.name.removeprefix("at_"): index for index, unit in enumerate(dag.units)}
    made_by = {producer: owners(dag, layers[producer]) for producer, _ in moves.values()}
    exact = (TOKENS % rows == 0 and parts in (1, 2, 4)) or (rows == 8 and parts in (1, 2))
    for task in range(dag.tasks):
        if int(dag.unit[task]) not in {layers[consumer] for consumer, _ in moves}:
            continue
        size, needed = read_from(dag, task), expected(dag, task, moves, made_by)
        assert all(size.get(parent, 0) >= count for parent, count in needed.items())
        if exact:
            assert size == needed


@pytest.mark.parametrize("made", [*EXACT, grouped])
def test_a_document_reads_the_same(made: Callable[[], tuple[Network, Moves]]) -> None:
    """Atoms of a network that went through a document read the same blocks."""
    network, _ = made()
    told = NetworkRecord.model_validate_json(NetworkRecord.of(network).model_dump_json())
    ours, theirs = (cut(network, random.Random(3)) for network in (network, told.build("document")))
    for column in ("block_bytes", "block_parent", "block_kind", "read_starts", "reads"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))


@pytest.mark.parametrize("made", [attention, grouped, joined, written])
def test_a_plan_of_moved_results_holds(made: Callable[[], tuple[Network, Moves]]) -> None:
    """What a plan claims is what its document says of it."""
    network, _ = made()
    machine = tw.tiled_machine("atomic-2x2")
    question = tw.Workload(Networks(network.name, (Part(network.name, network, 1),))).on(machine, "edp")
    plan = tw.solve(question, method="ls")
    assert tw.check(tw.TiledPlan(parse_plan(json.loads(json.dumps(plan.to_dict())), "document"))).holds


def test_views_that_no_result_has_are_refused() -> None:
    """A view of a document stays inside the result, and inside the axes of the operand."""
    network, _ = attention()
    data = NetworkRecord.of(network).model_dump()
    place = next(i for i, link in enumerate(data["links"]) if (link["producer"] or "").endswith("q"))
    for change, told in (({"first": 13}, "leaves the result"), ({"first": -1}, "greater than")):
        altered = copy.deepcopy(data)
        altered["links"][place]["view"] |= change
        with pytest.raises((InputError, ValidationError), match=told):
            NetworkRecord.model_validate(altered).build("document")
    data["links"][place]["view"]["axes"][-1]["start"] = 1
    with pytest.raises(ValidationError, match="more elements than the axis has"):
        NetworkRecord.model_validate(data)


@pytest.mark.parametrize("made", [attention, grouped, cropped, joined])
def test_bounds_hold_behind_movement(made: Callable[[], tuple[Network, Moves]]) -> None:
    """Atoms wait for all barriers of their layers, and random plans cost no less than the bound."""
    network, _ = made()
    rng = random.Random(5)
    machine = load_tiled_machine("atomic-2x2[link=4]")
    for seed in range(8):
        problem = TiledProblem(network, machine, tiled_objective(("edp", "makespan", "energy")[seed % 3]))
        goal, least = TiledGoal(problem), least_key(problem)
        dag = problem.dag([AtomSize(*(rng.randint(1, 6) for _ in range(4))) for _ in problem.units])
        assert least <= goal.judge(AtomicPlan(dag, random_plan(rng, problem, dag))).key
        starts, producers = dag.edges
        known: list[set[int]] = []
        for task in range(dag.tasks):
            direct = set(producers[starts[task] : starts[task + 1]].tolist())
            known.append(direct.union(*(known[parent] for parent in direct)))
        before = barriers(problem.units)
        for task in range(dag.tasks):
            for unit in before[int(dag.unit[task])]:
                assert set(range(int(dag.base[unit]), int(dag.base[unit + 1]))) <= known[task]
