"""ONNX import: operators, fusing, links, batch, and errors that name the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tilewright.foundation.errors import InputError
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import (
    conv2d,
    elementwise,
    gemm,
    matmul,
    pool2d,
    transposed_conv2d,
)
from tilewright.workloads.network import Link, Network
from tilewright.workloads.onnx.importer import load_onnx

Shape = list[int | str]


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Shape],
    weights: dict[str, list[int]] | None = None,
    shapes: dict[str, list[int]] | None = None,
    outputs: tuple[str, ...] = ("y",),
    opset: int = 17,
) -> onnx.ModelProto:
    """A model with weights of given sizes, and shape constants of given values."""
    stored = [
        numpy_helper.from_array(np.zeros(size, np.float32), name) for name, size in (weights or {}).items()
    ]
    stored += [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in (shapes or {}).items()]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    """A node with tensors named by words; ``_`` leaves one out."""
    names = ["" if word == "_" else word for word in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def only(network: Network) -> Operator:
    """The operator of a network with one layer."""
    assert len(network) == 1
    return network.layers[0].operator


@settings(max_examples=effort(80), deadline=None)
@given(st.data())
def test_convolutions_agree_with_onnx_shape_inference(data: st.DataObject) -> None:
    """For any pads, strides, dilations and groups, the operator's output has the size that ONNX infers."""
    groups, r, s = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    attributes: dict[str, Any] = {"group": groups}
    if data.draw(st.booleans()):
        attributes["strides"] = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    dilations = data.draw(st.lists(st.integers(1, 2), min_size=2, max_size=2))
    padding = data.draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", None]))
    if padding is not None:
        attributes["auto_pad"] = padding
    if padding in ("NOTSET", None):
        attributes["pads"] = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    if padding in ("VALID", "NOTSET", None):
        attributes["dilations"] = dilations
    if data.draw(st.booleans()):
        attributes["kernel_shape"] = [r, s]
    per_group = data.draw(st.integers(1, 2))
    proto = model(
        [node("Conv", "x w", **attributes)],
        {"x": [2, per_group * groups, 7, 8]},
        {"w": [groups * 2, per_group, r, s]},
    )
    inferred = shape_inference.infer_shapes(proto).graph.output[0].type.tensor_type.shape
    n, k, p, q = (axis.dim_value for axis in inferred.dim)
    bounds = {"G": 1, "K": 1, "C": 1} | only(load_onnx(proto)).bounds
    assert (n, k, p, q) == (bounds["N"], bounds["G"] * bounds["K"], bounds["P"], bounds["Q"])
    assert (bounds["C"], bounds["R"], bounds["S"]) == (per_group, r, s)


def test_one_dimensional_convolution_is_one_row() -> None:
    """A convolution over sequences becomes one with a single row."""
    proto = model([node("Conv", "x w", pads=[1, 1], strides=[2])], {"x": [1, 4, 9]}, {"w": [8, 4, 3]})
    assert only(load_onnx(proto)) == conv2d(k=8, c=4, r=1, s=3, h=1, w=9, stride=(1, 2), pad=(0, 1))


def test_transposed_convolution_reads_onnx_weights() -> None:
    """ConvTranspose takes its channels from weights laid out input channels first."""
    nodes = [node("ConvTranspose", "x w", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1], group=2)]
    proto = model(nodes, {"x": [1, 4, 5, 6]}, {"w": [4, 3, 3, 3]})
    expected = transposed_conv2d(k=6, c=4, p=5, q=6, r=3, s=3, stride=2, output_padding=1, groups=2)
    assert only(load_onnx(proto)) == expected


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm_transposes(transpose_a: bool, transpose_b: bool) -> None:
    """Gemm's flags say how its operands are stored, not what is multiplied."""
    nodes = [node("Gemm", "x w b", transA=int(transpose_a), transB=int(transpose_b))]
    x: Shape = [8, 3] if transpose_a else [3, 8]
    proto = model(nodes, {"x": x}, {"w": [5, 8] if transpose_b else [8, 5], "b": [5]})
    network = load_onnx(proto)
    assert only(network) == gemm(m=3, n=5, k=8, transpose_a=transpose_a, transpose_b=transpose_b)
    assert network.parameters == 45


@pytest.mark.parametrize(
    ("x", "w", "expected"),
    [
        ([2, 3, 4], [4, 5], gemm(m=6, n=5, k=4)),
        ([2, 3, 4], [4], gemm(m=6, n=1, k=4)),
        ([2, 3, 4], [2, 4, 5], matmul(batch=2, m=3, n=5, k=4)),
    ],
)
def test_matmul_folds_or_keeps_its_batch(x: Shape, w: list[int], expected: Operator) -> None:
    """A product with plain weights is one matrix product, one with batched weights is batched."""
    assert only(load_onnx(model([node("MatMul", "x w")], {"x": x}, {"w": w}))) == expected


def test_attention_scores_store_no_weights() -> None:
    """A product of two activations links both operands and has no parameters."""
    network = load_onnx(model([node("MatMul", "q k")], {"q": [2, 8, 4], "k": [2, 4, 8]}))
    assert network.parameters == 0
    assert [(link.producer, link.operand, link.elements) for link in network.links] == [
        (None, "A", 64),
        (None, "B", 64),
    ]


def test_pooling_kinds() -> None:
    """Window, ceiling and global pooling agree with their builders."""
    x: dict[str, Shape] = {"x": [1, 3, 8, 8]}
    window = load_onnx(model([node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)], x))
    assert only(window) == pool2d(c=3, h=8, w=8, r=3, s=3, stride=2, ceil=True)
    assert only(load_onnx(model([node("GlobalAveragePool", "x")], x))) == pool2d(c=3, h=8, w=8)


@pytest.mark.parametrize(("size", "kernel", "stride", "pad"), [(8, 3, 2, 0), (6, 1, 3, 0), (3, 2, 2, 1)])
def test_ceiling_pooling_has_the_size_that_onnx_infers(size: int, kernel: int, stride: int, pad: int) -> None:
    """Rounded-up pooling imports also where its last window lies in the padding alone."""
    attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "ceil_mode": 1}
    proto = model([node("MaxPool", "x", **attributes)], {"x": [1, 3, size, size]})
    inferred = shape_inference.infer_shapes(proto).graph.output[0].type.tensor_type.shape
    bounds = only(load_onnx(proto)).bounds
    assert [bounds[name] for name in "NCPQ"] == [axis.dim_value for axis in inferred.dim]


def test_reductions_with_axes_as_attribute_or_tensor() -> None:
    """A mean over the last axis keeps the other loops, however its axes are given."""
    by_attribute = load_onnx(model([node("ReduceMean", "x", axes=[-1], keepdims=0)], {"x": [2, 3, 4]}))
    nodes = [node("ReduceMean", "x axes")]
    by_tensor = load_onnx(model(nodes, {"x": [2, 3, 4]}, shapes={"axes": [2]}, opset=18))
    assert only(by_attribute) == only(by_tensor)
    assert only(by_tensor).reduction_dims == {"K"}


def test_pointwise_nodes_fuse_into_the_layer_that_they_alone_read() -> None:
    """Bias, normalisation and activation behind a convolution become part of it, up to a second reader."""
    nodes = [
        node("Conv", "x w", "c", name="conv"),
        node("BatchNormalization", "c s s s s", "n", name="norm"),
        node("Dropout", "n", "d", name="drop"),
        node("Add", "d b", "a", name="bias"),
        node("Relu", "a", "r", name="relu"),
        node("Sigmoid", "r", "g", name="gate"),
        node("Mul", "r g", name="swish"),
    ]
    network = load_onnx(model(nodes, {"x": [1, 3, 4, 4]}, {"w": [8, 3, 1, 1], "s": [8], "b": [8, 1, 1]}))
    assert [layer.name for layer in network.layers] == ["conv", "gate", "swish"]
    first = network.layers[0]
    assert first.fused == ("BatchNormalization", "Add", "Relu")
    assert first.nodes == ("conv", "norm", "bias", "relu")
    assert network.layers[2].operator == elementwise(shape=(1, 8, 4, 4), operands=2)
    assert network.reads("swish") == (
        Link("conv", "swish", "I0", "r", 128, axes=(0, 1, 2, 3), offsets=(0, 0, 0, 0)),
        Link("gate", "swish", "I1", "g", 128, axes=(0, 1, 2, 3), offsets=(0, 0, 0, 0)),
    )
    assert network.outputs == {"swish"}


def test_a_network_output_is_not_fused_away() -> None:
    """A result that leaves the network has a second reader, so the activation is a layer of its own."""
    nodes = [node("Gemm", "x w", "c", name="fc"), node("Relu", "c", "y", name="relu")]
    network = load_onnx(model(nodes, {"x": [1, 3]}, {"w": [3, 4]}, outputs=("c", "y")))
    assert [layer.name for layer in network.layers] == ["fc", "relu"]
    assert network.outputs == {"fc", "relu"}


def test_concatenated_channels_become_links_with_offsets() -> None:
    """Nested concatenation leads every producer to its channels of the reader."""
    nodes = [
        node("Conv", "x wa", "a", name="a"),
        node("Conv", "x wb", "b", name="b"),
        node("Concat", "a b", "ab", axis=1),
        node("Concat", "x ab", "xab", axis=-3),
        node("Conv", "xab wc", "y", name="c"),
    ]
    weights = {"wa": [2, 3, 1, 1], "wb": [4, 3, 1, 1], "wc": [8, 9, 1, 1]}
    network = load_onnx(model(nodes, {"x": [1, 3, 4, 4]}, weights))
    assert network.reads("c") == (
        Link(None, "c", "I", "x", 48, 0, ("Concat",)),
        Link("a", "c", "I", "a", 32, 3, ("Concat", "Concat")),
        Link("b", "c", "I", "b", 64, 5, ("Concat", "Concat")),
    )


def test_moved_data_is_followed_to_its_producer() -> None:
    """Reshaping, transposing and splitting show on the link, which reads no more than the part."""
    nodes = [
        node("Conv", "x w", "c", name="conv"),
        node("Reshape", "c flat", "f"),
        node("Transpose", "f", "t", perm=[0, 2, 1]),
        node("Split", "t", "first second", axis=1),
        node("MatMul", "second v", name="product"),
    ]
    proto = model(
        nodes, {"x": [1, 3, 4, 4]}, {"w": [8, 3, 1, 1], "v": [8, 5]}, {"flat": [1, 8, -1]}, opset=11
    )
    network = load_onnx(proto)
    assert network.reads("product") == (
        Link("conv", "product", "A", "c", 64, None, ("Reshape", "Transpose", "Split")),
    )


def test_names_come_from_weights_where_nodes_have_none() -> None:
    """Layers of numbered nodes are named after their weights, others after operation and place."""
    network = resolve_model("onnx:resnet50")
    assert [layer.name for layer in network.layers[:4]] == [
        "conv1",
        "MaxPool_3",
        "res2_0_branch2a",
        "res2_0_branch2b",
    ]
    assert network.layers[0].fused == ("BatchNormalization", "Relu")
    assert network.layers[-2].name == "pred"


def test_shuffled_channels_keep_the_graph_connected() -> None:
    """ShuffleNet's reshapes and transposes are links, and every layer but the first has a producer."""
    network = resolve_model("onnx:shufflenet")
    assert any(link.moves == ("Reshape", "Transpose", "Reshape") for link in network.links)
    assert all(network.graph.in_degree(layer.name) for layer in network.layers[1:])


@pytest.mark.parametrize("batch", [None, 1, 5])
def test_a_symbolic_batch_is_filled_in(batch: int | None) -> None:
    """A symbolic batch is 1 unless given, also where the shape is worked out by nodes."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n", axis=0),
        node("Concat", "n rest", "target", axis=0),
        node("Reshape", "x target", "flat"),
        node("Gemm", "flat w"),
    ]
    proto = model(nodes, {"x": ["N", 3, 4]}, {"w": [12, 5]}, {"zero": [0], "rest": [-1]})
    network = load_onnx(proto, batch=batch)
    assert only(network) == gemm(m=batch or 1, n=5, k=12)
    assert network.batch == (batch or 1)


@pytest.mark.parametrize("target", [[2, 12], [2, -1], [0, 12], [-1, 12]])
@pytest.mark.parametrize("as_node", [False, True])
def test_a_written_batch_is_replaced_in_reshapes(target: list[int], as_node: bool) -> None:
    """A batch written into inputs and reshapes is replaced, be the constant an initializer or a node."""
    nodes = [node("Reshape", "x target", "flat"), node("Gemm", "flat w")]
    if as_node:
        nodes.insert(0, node("Constant", "", "target", value_ints=target))
    proto = model(nodes, {"x": [2, 3, 4]}, {"w": [12, 5]}, {} if as_node else {"target": target})
    before = proto.SerializeToString()
    assert only(load_onnx(proto)) == gemm(m=2, n=5, k=12)
    assert only(load_onnx(proto, batch=6)) == gemm(m=6, n=5, k=12)
    assert proto.SerializeToString() == before


def test_a_bias_that_is_computed_is_a_sum() -> None:
    """A product or convolution with another layer's result as its bias is the product, then a sum."""
    network = load_onnx(model([node("Gemm", "x w c", transB=1)], {"x": [2, 3], "c": [2, 4]}, {"w": [4, 3]}))
    assert [layer.source for layer in network.layers] == ["Gemm", "Add"]
    assert network.layers[0].operator == gemm(m=2, n=4, k=3, transpose_b=True)
    proto = model([node("Conv", "x w b", pads=[1] * 4)], {"x": [1, 2, 4, 4], "b": [3]}, {"w": [3, 2, 3, 3]})
    assert [layer.source for layer in load_onnx(proto).layers] == ["Conv", "Add"]


def test_two_batched_inputs_grow_together() -> None:
    """Every input whose first axis is the batch follows it."""
    network = load_onnx(model([node("Add", "a b")], {"a": [1, 4], "b": [1, 4]}), batch=3)
    assert only(network) == elementwise(shape=(3, 4))


def test_a_batch_that_cannot_be_replaced_is_told() -> None:
    """Where the batch is baked into the model in another way, the node is named."""
    nodes = [node("Transpose", "x", "t", perm=[1, 0]), node("Reshape", "t fixed", "f"), node("Relu", "f")]
    proto = model(nodes, {"x": [2, 3]}, shapes={"fixed": [3, 2]})
    with pytest.raises(InputError, match=r"model: .*(Reshape|shapes cannot be inferred)"):
        load_onnx(proto, batch=4, name="model")
    sliced = model([node("Slice", "x zero two zero")], {"x": [2, 3]}, shapes={"zero": [0], "two": [2]})
    with pytest.raises(InputError, match=r"\(Slice\): its result has shape \[2, 3\] at batch 2 and \[2, 3\]"):
        load_onnx(sliced, batch=4)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (
            model([node("Det", "x", name="d")], {"x": [1, 2, 2]}),
            "node d (Det): the operation Det is not supported",
        ),
        (
            model([node("Relu", "x", domain="my.ops")], {"x": [1]}),
            "node 0 (Relu): the operation Relu of my.ops is not supported",
        ),
        (
            model([node("Relu", "z")], {"x": [1]}),
            "node 0 (Relu): reads tensor 'z', which no earlier node produces",
        ),
        (model([node("Relu", "x", "z")], {"x": [1]}), "the output 'y' is made by no node"),
        (model([node("Relu", "x")], {"x": ["N", "length"]}), "input x: axis 1 is length, expected a number"),
        (model([node("Relu", "x")], {"x": []}), "expected an input with a batch axis"),
        (model([node("Identity", "x")], {"x": [1]}), "expected at least one node that computes"),
        (
            model([node("Conv", "x w")], {"x": [1, 4, 3, 3]}, {"w": [1, 2, 1, 1]}),
            "node 0 (Conv): weights of 2 x 1 channels read 4 channels",
        ),
        (
            model([node("MatMul", "x w")], {"x": [2, 3]}, {"w": [4, 4]}),
            "node 0 (MatMul): Incompatible dimensions for matrix multiplication",
        ),
    ],
)
def test_unusable_models_are_told_by_node(proto: onnx.ModelProto, message: str) -> None:
    """What cannot be imported is told in one line with the file, the node and the reason."""
    with pytest.raises(InputError) as caught:
        load_onnx(proto, name="net")
    assert str(caught.value).startswith(f"net: {message}")
    assert "\n" not in str(caught.value)


def test_files_load_and_broken_files_are_told(tmp_path: Path) -> None:
    """A saved model loads; every truncation, other bytes and a folder are input errors naming the file."""
    path = tmp_path / "small.onnx"
    proto = model([node("Gemm", "x w")], {"x": [1, 3]}, {"w": [3, 4]})
    onnx.save(proto, path)
    network = load_onnx(path)
    assert (network.name, network.macs) == ("small", 12)
    whole = path.read_bytes()
    broken = tmp_path / "broken.onnx"
    for content in [whole[:length] for length in range(len(whole) - 1)] + [b"not a model", b"\0" * 100]:
        broken.write_bytes(content)
        if onnx_is_complete(content):
            continue
        with pytest.raises(InputError, match=r"broken\.onnx"):
            load_onnx(broken)
    with pytest.raises(InputError, match="cannot be read"):
        load_onnx(tmp_path)


def onnx_is_complete(content: bytes) -> bool:
    """Whether a truncation lost nothing but the opset, which follows the graph."""
    parsed = onnx.ModelProto()
    try:
        parsed.ParseFromString(content)
    except Exception:
        return False
    return bool(parsed.graph.output) and bool(parsed.opset_import)


def test_weights_in_other_files_are_not_needed(tmp_path: Path) -> None:
    """A model whose external weights are missing still imports, as only sizes matter."""
    proto = model([node("Gemm", "x w")], {"x": [1, 64]}, {"w": [64, 64]})
    path = tmp_path / "external.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert load_onnx(path).macs == 4096
