"""Views of results against numpy: index tensors are moved as the operations move elements."""

import itertools
import math
from random import Random

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tests.onnx_models import FLOAT, model, node, value, weights

from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Link, Network
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.passing import without_passed
from tilewright.workloads.selection import select_layers
from tilewright.workloads.views import View


def places(view: View) -> np.ndarray:
    """Which element of the result stands where; -1 for others."""
    table = np.full(view.shape, -1)
    for spot in itertools.product(*(range(axis.filled) for axis in view.axes)):
        place = view.first
        for index, axis in zip(spot, view.axes, strict=True):
            rest = index
            for size, stride in reversed(axis.digits):
                place += rest % size * stride
                rest //= size
        table[tuple(index + axis.start for index, axis in zip(spot, view.axes, strict=True))] = place
    return table


def split(rng: Random, number: int) -> list[int]:
    sizes = []
    while number > 1:
        sizes.append(rng.choice([d for d in range(1, number + 1) if number % d == 0]))
        number //= sizes[-1]
    return sizes or [1]


def test_views_follow_elements_through_random_moves() -> None:
    """Also where they are split, cut, placed among others, and passed on by a layer in between."""
    rng = Random(5)
    known = 0
    for _ in range(400):
        moved = np.arange(math.prod(shape := [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4))]))
        moved, view = moved.reshape(shape), View.whole(shape)
        for _ in range(rng.randint(1, 6)):
            kind, axis = rng.choice("rtspc"), rng.randrange(moved.ndim)
            following: View | None = view
            if kind == "r":
                sizes = split(rng, moved.size)
                moved, following = moved.reshape(sizes), view.reshaped(sizes)
            elif kind == "t":
                order = rng.sample(range(moved.ndim), moved.ndim)
                moved, following = moved.transpose(order), view.transposed(order)
            elif kind == "s":
                start = rng.randrange(moved.shape[axis])
                size = rng.randint(1, moved.shape[axis] - start)
                moved = np.take(moved, range(start, start + size), axis=axis)
                following = view.sliced(axis, start, size)
            elif kind == "p":
                pads = [(0, 0)] * moved.ndim
                pads[axis] = rng.randint(0, 2), rng.randint(0, 2)
                following = view.placed(axis, pads[axis][0], moved.shape[axis] + sum(pads[axis]))
                moved = np.pad(moved, pads, constant_values=-1)
            elif moved.min() >= 0:
                order = rng.sample(range(moved.ndim), moved.ndim)
                following = View.whole(moved.shape).transposed(order).through(view)
                moved = moved.transpose(order)
            if following is None or moved.size > 2000:
                break
            view = following
            known += 1
            assert np.array_equal(places(view), moved)
    assert known > 800


def moves(rng: Random) -> list[onnx.NodeProto]:
    """Random nodes between the product ``m`` of shape 2 x 4 x 6 and a reader of ``last``."""
    shape, tensor, nodes = [2, 4, 6], "m", []
    for number in range(rng.randint(1, 4)):
        kind, name = rng.choice(["Reshape", "Transpose", "Split", "Squeeze", "Concat"]), f"t{number}"
        axis = rng.randrange(len(shape))
        if kind == "Reshape":
            shape = split(rng, math.prod(shape))
            nodes.append(node("Constant", "", f"s{number}", value_ints=shape))
            nodes.append(node(kind, f"{tensor} s{number}", name))
        elif kind == "Transpose":
            order = rng.sample(range(len(shape)), len(shape))
            shape = [shape[place] for place in order]
            nodes.append(node(kind, tensor, name, perm=order))
        elif kind == "Split" and shape[axis] % 2 == 0:
            shape[axis] //= 2
            outputs = (f"{name} {name}b", f"{name}b {name}")[rng.randrange(2)]
            nodes.append(node(kind, tensor, outputs, axis=axis, num_outputs=2))
            if rng.random() < 0.5:
                shape[axis] *= 2
                nodes.append(node("Concat", outputs, f"{name}c", axis=axis))
                name += "c"
        else:
            nodes.append(node("Identity", tensor, name))
        tensor = name
    nodes.append(node("Identity", tensor, "last"))
    return nodes


@pytest.mark.parametrize("seed", range(40))
def test_links_agree_with_onnx_itself(seed: int) -> None:
    """The reference implementation moves index tensors; a link that knows its axes says the same."""
    middle = moves(Random(seed))
    graph = model(
        [node("MatMul", "x w", "m"), *middle, node("ReduceMax", "last", "z", keepdims=0)],
        [value("x", FLOAT, [2, 4, 5])],
        [value("z", FLOAT, None)],
        [weights("w", 5, 6)],
        opset=18,
    )
    network = load_onnx(graph)
    link, *others = network.reads("at_z")
    if others:
        assert all(link.axes is None and link.unknown for link in network.reads("at_z"))
        return
    between = model(middle, [value("m", FLOAT, [2, 4, 6])], [value("last", FLOAT, None)], opset=18)
    indices = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    (arrived,) = ReferenceEvaluator(between).run(None, {"m": indices})
    result = indices.reshape([axis.size for axis in network.layer("at_m").operator.output.axes])
    operand = network.layer("at_z").operator.tensor("I")
    wanted = np.asarray(arrived).reshape([axis.size for axis in operand.axes])
    if link.axes is None:
        assert link.unknown
        orders = itertools.permutations(range(result.ndim)) if wanted.ndim == result.ndim else ()
        assert not any(
            result.transpose(order).shape == wanted.shape and np.array_equal(result.transpose(order), wanted)
            for order in orders
        )
    else:
        assert np.array_equal(result.transpose(link.axes), wanted)


def mapped(name: str) -> tuple[Network, frozenset[str]]:
    network = resolve_model(name, None, OnnxOptions())
    kept = frozenset(layer for selected in select_layers(network) for layer in selected.names)
    return without_passed(network, kept), kept


def link_of(network: Network, producer: str, reader: str) -> Link:
    return next(link for link in network.reads(reader) if link.producer == producer)


def test_attention_is_seen_through_its_softmax() -> None:
    """In a network from ONNX the softmax is passed through and keeps its rows; in a family it is a layer."""
    network, _ = mapped("bert-base")
    link = link_of(network, "layer1.self_attention.scores", "layer1.self_attention.mix")
    assert (link.axes, link.offsets, link.rows, link.softmax) == ((0, 1, 2), (0, 0, 0), (2,), True)
    family, _ = mapped("gpt2[tokens=8]")
    name = next(layer.name for layer in family.layers if layer.name.endswith("attention.softmax"))
    assert (family.layer(name).rows, family.layer(name).is_softmax) == ((2,), True)
    assert link_of(family, name.replace("softmax", "scores"), name).axes == (0, 1, 2)
    assert link_of(family, name, name.replace("softmax", "mix")).axes == (0, 1, 2)


def test_heads_that_are_split_from_features_say_so() -> None:
    network, _ = mapped("bert-base")
    link = link_of(network, "layer1.self_attention.query", "layer1.self_attention.scores")
    assert link.axes is None
    assert "several axes" in link.unknown


def test_sums_are_not_passed_through() -> None:
    """A residual sum reads two results, so it stays between the layers around it."""
    network, kept = mapped("resnet50")
    assert "conv2_1.add" not in kept
    assert {link.producer for link in network.reads("conv2_2.conv1")} == {"conv2_1.add"}
    assert link_of(network, "conv2_1.conv1", "conv2_1.conv2").offsets == (0, 0, 1, 1)


def test_concatenated_operands_have_no_axes() -> None:
    nodes = [
        node("Conv", "x w", "a"),
        node("Conv", "x v", "b"),
        node("Concat", "a b", "c", axis=1),
        node("Conv", "c u", "y"),
    ]
    stored = [weights("w", 4, 3, 1, 1), weights("v", 4, 3, 1, 1), weights("u", 2, 8, 1, 1)]
    made = model(nodes, [value("x", FLOAT, [1, 3, 5, 5])], [value("y", FLOAT, None)], stored)
    links = load_onnx(made).reads("at_y")
    assert [(link.axes, "several tensors" in link.unknown) for link in links] == [(None, True)] * 2
