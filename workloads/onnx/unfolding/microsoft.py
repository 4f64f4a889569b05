"""Shapes of results of operations that ONNX Runtime adds: its quantiser's, its optimiser's, its attention.

Source: ONNX Runtime, ``docs/ContribOperators.md``, and its quantiser's operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tilewright.workloads.onnx.unfolding.evaluation import shape_of, tensor_type

MICROSOFT = "com.microsoft"
Shape = tuple[int, ...]
Results = list[tuple[int, Shape] | None]


@dataclass(frozen=True, slots=True)
class _Operands:
    """A node with what is known of its operands; a method raises ``ValueError`` for what is missing."""

    node: onnx.NodeProto
    types: Mapping[str, onnx.TypeProto]
    values: Mapping[str, np.ndarray]
    attributes: dict[str, Any]

    def there(self, position: int) -> bool:
        return len(self.node.input) > position and bool(self.node.input[position])

    def shape(self, position: int, axes: int | None = None) -> Shape:
        shape = shape_of(self.types.get(self.node.input[position])) if self.there(position) else None
        if shape is None or (axes is not None and len(shape) != axes):
            count = "" if axes is None else f" with {axes} axes"
            raise ValueError(f"expected a tensor{count} of known size as input {position}")
        return shape

    def element(self, position: int) -> int:
        return int(self.types[self.node.input[position]].tensor_type.elem_type)

    def number(self, name: str, default: int = 0) -> int:
        return int(self.attributes.get(name, default))

    def needed(self, name: str) -> int:
        if not isinstance(self.attributes.get(name), int) or self.attributes[name] < 1:
            raise ValueError(f"{name}: expected a number of at least 1")
        return int(self.attributes[name])


def foreign_types(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], values: Mapping[str, np.ndarray]
) -> dict[str, onnx.TypeProto]:
    """Types of the results of an operation that is not ONNX's own.

    Raises
    ------
    ValueError : for an operation without a rule, and for operands that do not fit to it
    """
    rule = RULES.get(node.domain, {}).get(node.op_type)
    if rule is None:
        raise ValueError(f"the operation {node.op_type} of {node.domain} is not supported")
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
    try:
        results = rule(_Operands(node, types, values, attributes))
    except (IndexError, TypeError, KeyError, ZeroDivisionError) as error:
        raise ValueError(f"its operands do not fit: {type(error).__name__}") from None
    named = zip(node.output, results, strict=False)
    return {name: tensor_type(*result) for name, result in named if name and result is not None}


def _same(*positions: int) -> Callable[[_Operands], Results]:
    """Results like the operands at these positions."""
    return lambda given: [(given.element(i), given.shape(i)) for i in positions]


def _broadcast(first: int, second: int) -> Callable[[_Operands], Results]:
    def rule(given: _Operands) -> Results:
        return [(given.element(first), _joined(given.shape(first), given.shape(second)))]

    return rule


def _joined(first: Shape, second: Shape) -> Shape:
    try:
        return tuple(int(size) for size in np.broadcast_shapes(first, second))
    except ValueError:
        raise ValueError(f"{list(first)} and {list(second)} do not broadcast") from None


def _product(first: int, second: int, *, floating: bool = False) -> Callable[[_Operands], Results]:
    def rule(given: _Operands) -> Results:
        a, b = given.shape(first), given.shape(second)
        a = (*a[:-2], a[-1], a[-2]) if given.number("transA") and len(a) > 1 else a
        b = (*b[:-2], b[-1], b[-2]) if given.number("transB") and len(b) > 1 else b
        if given.number("transBatchA") or given.number("transBatchB"):
            raise ValueError("a product with transposed batches is not supported")
        if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
            raise ValueError(f"multiplies {list(a)} by {list(b)}")
        kind = TensorProto.FLOAT if floating else given.element(first)
        return [(kind, (*_joined(a[:-2], b[:-2]), a[-2], b[-1]))]

    return rule


def _packed_product(given: _Operands) -> Results:
    """``MatMulNBits``: weights of few bits, packed; their sizes are attributes."""
    rows = given.shape(0)
    if rows[-1] != given.needed("K"):
        raise ValueError(f"multiplies {list(rows)} by weights of K={given.needed('K')}")
    return [(given.element(0), (*rows[:-1], given.needed("N")))]


def _global_pool(given: _Operands) -> Results:
    shape = given.shape(0)
    ones = (1,) * (len(shape) - 2)
    last = given.number("channels_last")
    return [(given.element(0), (shape[0], *ones, shape[-1]) if last else (*shape[:2], *ones))]


def _concatenated(given: _Operands) -> Results:
    """``QLinearConcat``: a scale and a zero point, then triples of tensor, scale and zero point."""
    shapes = [given.shape(i) for i in range(2, len(given.node.input), 3)]
    axis = given.number("axis")
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    return [(given.element(2), tuple(whole))]


def _attention(given: _Operands) -> Results:
    """``Attention`` and ``QAttention``: input B x S x C, joined weights C x (Q + K + V)."""
    batch, length, _ = given.shape(0, 3)
    joined = given.shape(1, 2)[1]
    sizes = given.attributes.get("qkv_hidden_sizes")
    width = int(sizes[2]) if sizes else joined // 3
    past = 8 if given.node.op_type == "QAttention" else 4
    if given.there(past):
        _, _, heads, before, head = given.shape(past, 5)
        present: tuple[int, Shape] | None = (given.element(past), (2, batch, heads, before + length, head))
    else:
        heads = given.needed("num_heads")
        present = (given.element(0), (2, batch, heads, length, joined // 3 // heads))
    kind = given.element(3 if given.node.op_type == "QAttention" else 0)
    return [(kind, (batch, length, width)), present]


def _heads(given: _Operands) -> Results:
    """``MultiHeadAttention``: query B x S x C, or all three packed as B x S x N x 3 x H."""
    heads = given.needed("num_heads")
    query = given.shape(0)
    if len(query) == 5:
        batch, length, _, _, head = query
        return [(given.element(0), (batch, length, heads * head))]
    batch, length, width = query
    key = given.shape(1)
    if len(key) == 5:
        return [(given.element(0), (batch, length, width))]
    tokens = key[2] if len(key) == 4 else key[1]
    columns = width
    if given.there(2):
        value = given.shape(2)
        columns = value[1] * value[3] if len(value) == 4 else value[2]
    past = given.shape(6, 4)[2] if given.there(6) else 0
    return [
        (given.element(0), (batch, length, columns)),
        (given.element(0), (batch, heads, past + tokens, width // heads)),
        (given.element(0), (batch, heads, past + tokens, columns // heads)),
    ]


def _grouped(given: _Operands) -> Results:
    """``GroupQueryAttention``: query B x S x C, which keys and values of fewer heads may be packed into."""
    batch, length, width = given.shape(0, 3)
    heads, groups = given.needed("num_heads"), given.needed("kv_num_heads")
    packed = not given.there(1)
    head = width // (heads + 2 * groups) if packed else width // heads
    past = given.shape(3, 4)[2] if given.there(3) else 0
    total = given.values.get(given.node.input[6]) if given.there(6) else None
    tokens = length if packed else given.shape(1, 3)[1]
    seen = max(past, int(total.reshape(-1)[0])) if total is not None and total.size else past + tokens
    cache = (given.element(0), (batch, groups, seen, head))
    return [(given.element(0), (batch, length, heads * head)), cache, cache]


def _embedded(given: _Operands) -> Results:
    """``EmbedLayerNormalization``: words B x S, tables of words, places and kinds of segments."""
    batch, length = given.shape(0, 2)
    width = given.shape(2, 2)[1]
    kind = given.element(2)
    return [(kind, (batch, length, width)), (TensorProto.INT32, (batch,)), (kind, (batch, length, width))]


def _skip_normalised(given: _Operands) -> Results:
    shape = given.shape(0)
    rows = (TensorProto.FLOAT, (*shape[:-1], 1))
    return [(given.element(0), shape), rows, rows, (given.element(0), shape)]


def _recurrent(given: _Operands) -> Results:
    """``DynamicQuantizeLSTM``: like ``LSTM``, weights as direction x input x 4 hidden."""
    length, batch, _ = given.shape(0, 3)
    directions = given.shape(2, 3)[0]
    hidden = given.needed("hidden_size")
    state = (given.element(0), (directions, batch, hidden))
    return [(given.element(0), (length, directions, batch, hidden)), state, state]


def _windows(data: int, weights: int | None) -> Callable[[_Operands], Results]:
    """Convolution or pooling with the operands at these positions."""

    def rule(given: _Operands) -> Results:
        shape = given.shape(data)
        if given.number("channels_last"):
            shape = (shape[0], shape[-1], *shape[1:-1])
        kernel = list(given.attributes.get("kernel_shape", ()))
        channels = shape[1]
        if weights is not None:
            filters = given.shape(weights)
            kernel, channels = kernel or list(filters[2:]), filters[0]
        spatial = len(shape) - 2
        strides = given.attributes.get("strides") or [1] * spatial
        dilations = given.attributes.get("dilations") or [1] * spatial
        pads = given.attributes.get("pads") or [0] * 2 * spatial
        mode = given.attributes.get("auto_pad", b"NOTSET")
        rounded = math.ceil if given.number("ceil_mode") else math.floor
        sizes = []
        for i, size in enumerate(shape[2:]):
            span = (kernel[i] - 1) * dilations[i] + 1
            if mode in (b"SAME_UPPER", b"SAME_LOWER"):
                sizes.append(-(-size // strides[i]))
            else:
                around = 0 if mode == b"VALID" else pads[i] + pads[i + spatial]
                sizes.append(rounded((size + around - span) / strides[i]) + 1)
        if given.number("channels_last"):
            return [(given.element(data), (shape[0], *sizes, channels))]
        return [(given.element(data), (shape[0], channels, *sizes))]

    return rule


Rule = Callable[[_Operands], Results]
RULES: dict[str, dict[str, Rule]] = {
    "": {"SimplifiedLayerNormalization": _same(0)},
    MICROSOFT: {
        **dict.fromkeys(
            ("BiasAdd", "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "RotaryEmbedding"), _same(0)
        ),
        **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization"), _same(0)),
        **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), _same(0)),
        "QuantizeLinear": lambda given: [
            (given.element(2) if given.there(2) else TensorProto.UINT8, given.shape(0))
        ],
        "DequantizeLinear": lambda given: [(given.element(1), given.shape(0))],
        "QLinearAdd": _broadcast(0, 3),
        "QLinearMul": _broadcast(0, 3),
        "QLinearConcat": _concatenated,
        "QLinearGlobalAveragePool": _global_pool,
        "QLinearAveragePool": _windows(0, None),
        "QLinearConv": _windows(0, 3),
        "FusedConv": _windows(0, 1),
        "QGemm": _product(0, 3),
        "FusedGemm": _product(0, 1),
        "FusedMatMul": _product(0, 1),
        "DynamicQuantizeMatMul": _product(0, 1, floating=True),
        "MatMulIntegerToFloat": _product(0, 1, floating=True),
        "MatMulNBits": _packed_product,
        "DynamicQuantizeLSTM": _recurrent,
        "Attention": _attention,
        "QAttention": _attention,
        "MultiHeadAttention": _heads,
        "GroupQueryAttention": _grouped,
        "EmbedLayerNormalization": _embedded,
        "SkipLayerNormalization": _skip_normalised,
        "SkipSimplifiedLayerNormalization": _skip_normalised,
    },
}
"""By domain and operation: types of the results from those of the operands."""
