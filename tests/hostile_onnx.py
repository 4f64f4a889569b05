"""Hostile ONNX models: files of few bytes that stand for much, and models with anything in any field."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import TensorProto, helper, numpy_helper

INTEGERS = (
    0,
    -1,
    1,
    2,
    3,
    7,
    64,
    65,
    4096,
    2**31 - 1,
    2**31,
    2**32,
    10**12,
    2**62,
    2**63 - 1,
    -(2**63),
    -(10**12),
)
NUMBERS = (0.0, -0.0, -1.0, 1e38, float("nan"), float("inf"), 1e-45)
TEXTS = (
    "",
    "x",
    "y",
    "a",
    "w",
    "Relu",
    "Concat",
    "F2",
    "local",
    "ai.onnx",
    "x" * 300,
    "x" * 20_000,
    "\x1b[31m",
    "a\0b",
    "\u202e",
)
BYTES = (
    b"",
    b"\xff" * 7,
    b"\0" * 8,
    b"\xff" * 8,
    b"\x7f" * 64,
    b"NOTSET",
    b"SAME_UPPER",
    b"ij,jk->ik",
    b"a" * 5000,
)


def constant(name: str, *values: int) -> onnx.TensorProto:
    """A stored row of integers."""
    return numpy_helper.from_array(np.array(values, np.int64), name)


def made(
    nodes: list[onnx.NodeProto],
    *stored: onnx.TensorProto,
    functions: tuple[onnx.FunctionProto, ...] = (),
    shape: tuple[int | str, ...] = (1, 4, 8, 8),
    output: str = "y",
) -> onnx.ModelProto:
    """A model of one input ``x`` with the weights ``w`` of a convolution of four channels."""
    weights = numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "hostile",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [weights, *stored],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    """A node with tensors named by words, itself named after its first result."""
    return helper.make_node(
        op, inputs.split(), outputs.split(), name=f"at_{outputs.split()[0]}", **attributes
    )


def chain(
    op: str, count: int, operands: str = "{0}", first: str = "c", **attributes: Any
) -> list[onnx.NodeProto]:
    """Nodes that read each other: ``c`` is the first operand, ``c1``, ``c2``, … are the results."""
    names = [first, *(f"{first}{i + 1}" for i in range(count))]
    return [node(op, operands.format(names[i]), names[i + 1], **attributes) for i in range(count)]


def _functions(levels: int, calls: int, *, recursive: bool = False) -> tuple[onnx.FunctionProto, ...]:
    """Functions of which each calls the one before it some times, the first the last where recursive."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = []
    for level in range(levels):
        called = f"F{level - 1 if level else levels - 1}"
        inner = (
            helper.make_node(called, [], [], domain="local")
            if level or recursive
            else helper.make_node("Relu", [], [])
        )
        body = []
        for i in range(calls):
            copy = onnx.NodeProto()
            copy.CopyFrom(inner)
            copy.input.append("a" if i == 0 else f"t{i}")
            copy.output.append("b" if i == calls - 1 else f"t{i + 1}")
            body.append(copy)
        functions.append(helper.make_function("local", f"F{level}", ["a"], ["b"], body, opsets))
    return tuple(functions)


def _call(levels: int, source: str, target: str) -> onnx.NodeProto:
    return helper.make_node(f"F{levels - 1}", [source], [target], name="call", domain="local")


def _branches(depth: int, width: int) -> onnx.NodeProto:
    """An ``If`` whose branches hold ``width`` of the same kind each, ``depth`` deep."""
    counter = iter(range(10**9))

    def graph(depth: int) -> onnx.GraphProto:
        inner = (
            [_if(depth - 1) for _ in range(width)]
            if depth
            else [helper.make_node("Identity", ["x"], [f"i{next(counter)}"])]
        )
        out = helper.make_tensor_value_info(inner[-1].output[0], TensorProto.FLOAT, None)
        return helper.make_graph(inner, f"g{next(counter)}", [], [out])

    def _if(depth: int) -> onnx.NodeProto:
        return helper.make_node(
            "If", ["k"], [f"b{next(counter)}"], then_branch=graph(depth), else_branch=graph(0)
        )

    outer = _if(depth)
    outer.output[0] = "branched"
    return outer


def amplifiers() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Models of few bytes that stand for very much, by what they do."""
    conv = node("Conv", "x w")
    to_x = node("Conv", "x w", "c")
    yield (
        "folded concat",
        made(
            [*chain("Concat", 40, "{0} {0}", axis=0), node("Expand", "x c40", "e"), node("Conv", "e w")],
            constant("c", 1, 2),
        ),
    )
    yield "folded concat unused", made([*chain("Concat", 40, "{0} {0}", axis=0), conv], constant("c", 1, 2))
    yield (
        "folded shape concat",
        made(
            [
                node("Shape", "x", "c"),
                *chain("Concat", 40, "{0} {0}", axis=0),
                node("Expand", "x c40", "e"),
                node("Conv", "e w"),
            ]
        ),
    )
    yield (
        "folded wide concat",
        made([*chain("Concat", 4, " ".join(["{0}"] * 500), axis=0), conv], constant("c", 1, 2)),
    )
    yield (
        "folded gather",
        made([*chain("Gather", 40, "{0} i", axis=0), conv], constant("c", 1, 2), constant("i", *([0] * 500))),
    )
    yield "pieces", made([to_x, *chain("Concat", 20, "{0} {0}", axis=1), node("GlobalAveragePool", "c20")])
    yield (
        "pieces of rows",
        made([to_x, *chain("Concat", 20, "{0} {0}", axis=2), node("GlobalAveragePool", "c20")]),
    )
    split = [to_x]
    for i in range(40):
        split += [
            node("Split", f"c{i or ''}", f"l{i} r{i}", axis=1),
            node("Concat", f"l{i} r{i}", f"c{i + 1}", axis=1),
        ]
    yield "split and concat", made([*split, node("GlobalAveragePool", "c40")])
    yield (
        "split many",
        made(
            [
                to_x,
                *chain("Concat", 14, "{0} {0}", axis=1),
                node("Split", "c14", " ".join(f"s{i}" for i in range(4096)), axis=1),
                node("Relu", "s7"),
            ]
        ),
    )
    yield (
        "unsupported pairs",
        made(
            [
                to_x,
                node("Det", "c", "c1"),
                *[node("Mystery", f"c{i or ''} c{i + 1}", f"c{i + 2}") for i in range(60)],
                node("Relu", "c61"),
            ]
        ),
    )
    unit = constant("one", 0)
    yield "unsqueeze", made([to_x, *chain("Unsqueeze", 3000, "{0} one"), node("Softmax", "c3000")], unit)
    yield "unsqueeze constants", made([*chain("Unsqueeze", 3000, "{0} one"), conv], unit, constant("c", 1, 2))
    yield (
        "unsqueeze widely",
        made([node("Unsqueeze", "x many", "z"), node("Relu", "z")], constant("many", *range(400))),
    )
    hidden = []
    for i in range(1500):
        hidden += [
            node("Unsqueeze", f"c{i or ''} one", f"u{i}"),
            node("Sigmoid", f"u{i}", f"v{i}"),
            node("Neg", f"v{i}", f"c{i + 1}"),
        ]
    yield "unsqueeze and neg", made([to_x, *hidden, node("Relu", "c1500")], unit)
    pairs = []
    for i in range(3000):
        pairs += [node("Unsqueeze" if i % 2 == 0 else "Squeeze", f"c{i or ''} one", f"c{i + 1}")]
    yield "unsqueeze and squeeze", made([to_x, *pairs, node("Softmax", "c3000")], unit)
    yield (
        "many readers of a long way",
        made([to_x, *pairs, *[node("Softmax", "c3000", f"y{i}" if i else "y") for i in range(3000)]], unit),
    )
    yield "transposes", made([to_x, *chain("Transpose", 3000), node("Softmax", "c3000")])
    yield "relus", made([to_x, *chain("Relu", 3000), node("Softmax", "c3000")])
    for name, source in (("functions", "x"), ("functions of constants", "k")):
        yield name, made([_call(40, source, "f"), conv], constant("k", 1), functions=_functions(40, 2))
        yield (
            f"wide {name}",
            made([_call(4, source, "f"), conv], constant("k", 1), functions=_functions(4, 100)),
        )
        yield (
            f"deep {name}",
            made([_call(2000, source, "f"), conv], constant("k", 1), functions=_functions(2000, 1)),
        )
        yield (
            f"recursive {name}",
            made([_call(1, source, "f"), conv], constant("k", 1), functions=_functions(1, 1, recursive=True)),
        )
        yield (
            f"circular {name}",
            made([_call(3, source, "f"), conv], constant("k", 1), functions=_functions(3, 2, recursive=True)),
        )
    folding = helper.make_function(
        "local",
        "F0",
        ["a"],
        ["b"],
        [*chain("Concat", 30, "{0} {0}", first="a", axis=0), node("Identity", "a30", "b")],
        [helper.make_opsetid("", 17)],
    )
    yield "folding function", made([_call(1, "k", "f"), conv], constant("k", 1), functions=(folding,))
    yield (
        "folding function of a shape",
        made(
            [node("Shape", "x", "k"), _call(1, "k", "f"), node("Expand", "x f", "e"), node("Conv", "e w")],
            functions=(folding,),
        ),
    )
    truth = numpy_helper.from_array(np.array(True), "k")
    yield "branches", made([_branches(8, 2), conv], truth)
    yield "deep branches", made([_branches(24, 1), conv], truth)
    for shape in (
        (10**12, 4, 8, 8),
        (1, 4, 2**62, 2**62),
        (1, 4, 2**63 - 1, 2),
        (-1, 4, 8, 8),
        (0, 4, 8, 8),
        (1,) * 65,
        (1,) * 100_000,
        (),
        ("n",) * 4,
    ):
        yield f"shape {str(shape)[:30]}", made([conv], shape=shape)
    yield (
        "constant of shape",
        made([node("ConstantOfShape", "s", "k"), node("Add", "x k")], constant("s", 10**6, 10**6, 10**6)),
    )
    yield (
        "expand",
        made(
            [node("Expand", "x s", "e"), node("Relu", "e")],
            constant("s", 10**6, 10**6, 10**6, 10**6, 1, 1, 1),
        ),
    )
    yield (
        "tile",
        made([node("Tile", "x s", "e"), node("Relu", "e")], constant("s", 10**9, 10**9, 10**9, 10**9)),
    )
    yield "pad", made([node("Pad", "x s", "e"), node("Relu", "e")], constant("s", *([2**61] * 8)))
    yield (
        "range",
        made(
            [
                node("Range", "a b d", "k"),
                node("Shape", "k", "s"),
                node("Expand", "x s", "e"),
                node("Relu", "e"),
            ],
            constant("a", 0),
            constant("b", 2**62),
            constant("d", 1),
        ),
    )
    yield (
        "resize",
        made(
            [node("Resize", "x n n s", "e"), node("Relu", "e")],
            constant("n"),
            constant("s", 1, 4, 2**40, 2**40),
        ),
    )
    yield (
        "one hot",
        made([node("OneHot", "x d v", "e"), node("Relu", "e")], constant("d", 2**40), constant("v", 0, 1)),
    )
    yield "gather", made([node("Gather", "x i", "e"), node("Relu", "e")], constant("i", *([0] * 100_000)))
    yield "einsum", made([node("Einsum", "x", "e", equation="abcd->" + "abcd" * 1000), node("Relu", "e")])
    yield "reshape", made([node("Reshape", "x s", "e"), node("Relu", "e")], constant("s", *([1] * 400), 256))
    lying = TensorProto(name="s", dims=[10**12], data_type=TensorProto.INT64, raw_data=b"\0" * 8)
    yield "tensor of another length", made([node("Reshape", "x s", "e"), node("Relu", "e")], lying)
    outside = TensorProto(name="s", dims=[4], data_type=TensorProto.INT64, data_location=TensorProto.EXTERNAL)
    for key, value in (
        ("location", "../../../../../../etc/passwd"),
        ("offset", "0"),
        ("length", str(10**15)),
    ):
        outside.external_data.add(key=key, value=value)
    yield "outside data", made([node("Reshape", "x s", "e"), node("Relu", "e")], outside)
    sparse = made([node("Conv", "x v", "y")])
    values = numpy_helper.from_array(np.ones(1, np.float32), "v")
    sparse.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, constant("i", 0), [10**12, 10**12])
    )
    yield "sparse", sparse
    text = helper.make_tensor("t", TensorProto.STRING, [2], [b"\xff\xfe", b"x" * 5000])
    yield "texts", made([node("Add", "x t")], text)
    yield "long names", made([node("Conv", "x " + "w" * 20_000)])


def seeds() -> list[onnx.ModelProto]:
    """Sound models of many operations, to be changed."""
    stored = [constant("s", 1, -1), constant("one", 0), constant("two", 2, 2), constant("parts", 2, 2)]
    plain = [
        node(
            "Conv",
            "x w",
            "a",
            strides=[1, 1],
            pads=[0, 0, 0, 0],
            dilations=[1, 1],
            group=1,
            kernel_shape=[1, 1],
        ),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "p", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("Split", "p parts", "l r", axis=1),
        node("Concat", "r l", "q", axis=1),
        node("ConvTranspose", "q w", "t", strides=[2, 2], auto_pad="SAME_UPPER"),
        node("Add", "t x", "u"),
        node("Unsqueeze", "u one", "v"),
        node("Squeeze", "v one", "z"),
        node("Transpose", "z", "zt", perm=[0, 1, 3, 2]),
        node("Reshape", "zt s", "g"),
        node("Softmax", "g", "y", axis=-1),
    ]
    shaped = [
        node("Shape", "x", "n"),
        node("Gather", "n one", "n0", axis=0),
        node("Constant", "", "k", value=constant("k", -1)),
        node("Concat", "n0 k", "to", axis=0),
        node("Reshape", "x to", "a"),
        node("MatMul", "a m", "b"),
        node("Gemm", "b m2", "c", transB=1, alpha=0.5),
        node("ReduceMean", "c", "d", axes=[-1], keepdims=1),
        node("LayerNormalization", "c d", "e", axis=-1),
        node("Erf", "c", "y"),
    ]
    weights = [
        numpy_helper.from_array(np.ones(size, np.float32), name)
        for name, size in (("m", (256, 8)), ("m2", (4, 8)))
    ]
    truth = numpy_helper.from_array(np.array(True), "k")
    conv = node("Conv", "x w")
    return [
        made(plain, *stored),
        made(shaped, *stored, *weights, shape=("batch", 4, 8, 8)),
        made(
            [_call(3, "x", "f"), _call(3, "k", "g"), node("Conv", "f w")], truth, functions=_functions(3, 2)
        ),
        made([_branches(2, 2), conv], truth),
    ]


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if hasattr(value, "extend") else [value]:
                yield from _messages(inner)


def _value(field: Any, draw: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return draw.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return draw.choice(BYTES)
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return draw.choice(NUMBERS)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return draw.choice([value.number for value in field.enum_type.values])
    small = field.type in (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT32)
    unsigned = field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_UINT32)
    number = draw.choice(INTEGERS)
    number = number % 2**31 if small else number
    return abs(number) % 2**63 if unsigned else number


def changed(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """A copy in which one to three fields are set, dropped, repeated, moved or taken from elsewhere."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(draw.choice((1, 1, 2, 3))):
        every = list(_messages(copy))
        message = draw.choice(every)
        field = draw.choice(message.DESCRIPTOR.fields)
        if draw.random() < 0.5 and message.ListFields():
            field = draw.choice(message.ListFields())[0]
        several = hasattr(getattr(message, field.name), "extend")
        if draw.random() < 0.15:
            message.ClearField(field.name)
        elif field.message_type is not None:
            alike = [candidate for candidate in every if candidate.DESCRIPTOR is field.message_type]
            other = field.message_type._concrete_class()
            if alike:
                other.CopyFrom(draw.choice(alike))
            if not several:
                getattr(message, field.name).CopyFrom(other)
            else:
                held = getattr(message, field.name)
                inner = [*held]
                inner.insert(draw.randint(0, len(inner)), other)
                action = draw.randrange(3)
                if action == 1:
                    draw.shuffle(inner)
                elif action == 2:
                    inner.pop(draw.randrange(len(inner)))
                kept = [
                    field.message_type._concrete_class.FromString(part.SerializeToString()) for part in inner
                ]
                message.ClearField(field.name)
                getattr(message, field.name).extend(kept)
        elif several:
            held = getattr(message, field.name)
            if len(held) and draw.random() < 0.6:
                held[draw.randrange(len(held))] = _value(field, draw)
            else:
                held.extend([_value(field, draw)] * draw.choice((1, 1, 2, 100)))
        else:
            setattr(message, field.name, _value(field, draw))
    return copy
