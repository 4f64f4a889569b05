"""Operators from ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import (
    conv2d,
    elementwise,
    gemm,
    matmul,
    pool2d,
    reduction,
    transposed_conv2d,
)
from tilewright.workloads.onnx.graph import Node, OnnxGraph
from tilewright.workloads.onnx.operations import CELLS, NORMALISING, POINTWISE, POOLING, REDUCING
from tilewright.workloads.onnx.repeats import repeats
from tilewright.workloads.onnx.sums import einsum, volume_convolution, volume_pool


@dataclass(frozen=True, slots=True)
class Built:
    """A node's operator.

    Parameters
    ----------
    operator : what the node computes
    operands : ONNX tensor by operand, for the operands that are activations
    stored_weights : whether the weight operand is a constant of the model
    before : elements of padding before the first row and column of windows, where there are any
    """

    operator: Operator
    operands: dict[str, str]
    stored_weights: bool = True
    before: tuple[int, ...] = ()


def build(graph: OnnxGraph, node: Node) -> Built:
    """The operator of a computing node.

    Raises
    ------
    InputError : naming the file and the node, for ranks, attributes or shapes that are not supported, and
        where the operator's result has not the size that ONNX infers
    """
    builder = BUILDERS.get(node.op)
    if builder is None:  # of what holds other nodes, or stands for several, where operands are not known
        raise InputError(
            graph.where, node.label, "what it computes cannot be told without its operands' sizes"
        )
    try:
        built = builder(graph, node)
    except InputError as error:
        if error.where == graph.where:
            raise
        field = f"{error.field}: " if error.field else ""
        raise InputError(graph.where, node.label, f"{field}{error.message}") from None
    if node.op != "ConvTranspose":  # what it crops is computed, too
        computed = math.prod(axis.size for axis in built.operator.output.axes)
        expected = graph.elements(node, node.outputs[0])
        if computed != expected:
            raise InputError(
                graph.where, node.label, f"computes {computed} elements where ONNX expects {expected}"
            )
    return built


def _convolution(graph: OnnxGraph, node: Node) -> Built:
    if len(graph.shape(node, node.inputs[0])) > 4:
        return _weighted(graph, node, volume_convolution(graph, node), "I", "W")
    data, filters = _spatial(graph, node, node.inputs[0]), _spatial(graph, node, node.inputs[1])
    kernel = _kernel(graph, node, filters[2:])
    stride, dilation = _pair(graph, node, "strides"), _pair(graph, node, "dilations")
    groups = node.attributes.get("group", 1)
    if filters[1] * groups != data[1]:
        raise InputError(
            graph.where, node.label, f"weights of {filters[1]} x {groups} channels read {data[1]} channels"
        )
    pads = _pads(graph, node, data[2:], kernel, stride, dilation)
    operator = conv2d(
        n=data[0],
        k=filters[0],
        c=data[1],
        r=kernel[0],
        s=kernel[1],
        h=data[2],
        w=data[3],
        stride=stride,
        dilation=dilation,
        groups=groups,
        pad=pads,
    )
    return replace(_weighted(graph, node, operator, "I", "W"), before=_before(graph, node, pads))


def _transposed(graph: OnnxGraph, node: Node) -> Built:
    if len(graph.shape(node, node.inputs[0])) > 4:
        return _weighted(graph, node, volume_convolution(graph, node), "I", "W")
    data, filters = _spatial(graph, node, node.inputs[0]), _spatial(graph, node, node.inputs[1])
    kernel = _kernel(graph, node, filters[2:])
    groups = node.attributes.get("group", 1)
    if filters[0] != data[1]:
        raise InputError(graph.where, node.label, f"weights of {filters[0]} channels read {data[1]} channels")
    operator = transposed_conv2d(
        n=data[0],
        k=filters[1] * groups,
        c=data[1],
        p=data[2],
        q=data[3],
        r=kernel[0],
        s=kernel[1],
        stride=_pair(graph, node, "strides"),
        dilation=_pair(graph, node, "dilations"),
        groups=groups,
        output_padding=_pair(graph, node, "output_padding", default=0),
    )
    return _weighted(graph, node, operator, "I", "W")


def _gemm(graph: OnnxGraph, node: Node) -> Built:
    first, second = graph.shape(node, node.inputs[0]), graph.shape(node, node.inputs[1])
    transpose_a, transpose_b = bool(node.attributes.get("transA")), bool(node.attributes.get("transB"))
    m, k = first[::-1] if transpose_a else first
    k_again, n = second[::-1] if transpose_b else second
    if k != k_again:
        raise InputError(graph.where, node.label, f"multiplies {list(first)} by {list(second)}")
    operator = gemm(m=m, n=n, k=k, transpose_a=transpose_a, transpose_b=transpose_b)
    return _weighted(graph, node, operator, "A", "B")


def _matmul(graph: OnnxGraph, node: Node) -> Built:
    first, second = graph.shape(node, node.inputs[0]), graph.shape(node, node.inputs[1])
    first = (1, *first) if len(first) == 1 else first
    second = (*second, 1) if len(second) == 1 else second
    if first[-1] != second[-2]:
        raise InputError(graph.where, node.label, f"multiplies {list(first)} by {list(second)}")
    batch, b_batch = first[:-2], second[:-2]
    copies = repeats(graph, node.inputs[1]) if node.inputs[1] in node.data and batch else 1
    if copies > 1 and batch == b_batch and batch[-1] % copies == 0:
        batch = (*batch[:-1], batch[-1] // copies, copies)
        b_batch = (*batch[:-1], 1)
    operator = matmul(m=first[-2], n=second[-1], k=first[-1], batch=batch, b_batch=b_batch)
    return _weighted(graph, node, operator, "A", "B")


def _einsum(graph: OnnxGraph, node: Node) -> Built:
    shapes = [graph.shape(node, tensor) for tensor in node.inputs]
    try:
        operator = einsum(str(node.attributes.get("equation", "")), shapes)
    except ValueError as error:
        raise InputError(graph.where, node.label, str(error)) from None
    names = [tensor.name for tensor in operator.inputs]
    operands = {name: tensor for name, tensor in zip(names, node.inputs, strict=True) if tensor in node.data}
    return Built(operator, operands, stored_weights=len(operands) < len(names))


def _short_transforms(graph: OnnxGraph, node: Node) -> Built:
    """``STFT``: a convolution with the transform's sines and cosines, as tables that nobody learns."""
    signal, result = graph.shape(node, node.inputs[0]), graph.shape(node, node.outputs[0])
    step = graph.numbers.get(node.inputs[1])
    window = node.inputs[2] if len(node.inputs) > 2 else ""
    length = graph.numbers.get(node.inputs[3]) if len(node.inputs) > 3 else None
    frame = graph.shape(node, window)[0] if window else length[0] if length else None
    if step is None or frame is None or len(result) != 4:
        raise InputError(
            graph.where, node.label, "expected a frame's step and length that do not depend on the data"
        )
    parts = signal[2] if len(signal) > 2 else 1
    operator = conv2d(
        n=signal[0], k=2 * result[2], c=parts, p=1, q=result[1], r=1, s=frame, stride=(1, step[0])
    )
    return Built(operator, {"I": node.inputs[0]})


def _transform(graph: OnnxGraph, node: Node) -> Built:
    """``DFT``: a product with the transform's matrix."""
    signal, result = graph.shape(node, node.inputs[0]), graph.shape(node, node.outputs[0])
    default = 1 if graph.opset < 20 else -2
    given = graph.numbers.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    if len(node.inputs) > 2 and node.inputs[2] and given is None:
        raise InputError(graph.where, node.label, "expected an axis that does not depend on the data")
    axis = given[0] if given else node.attributes.get("axis", default)
    points = graph.numbers.get(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    read = min(signal[axis], points[0]) if points else signal[axis]
    columns = result[axis] * result[-1]
    operator = gemm(m=math.prod(result) // columns, n=columns, k=read * signal[-1])
    return Built(operator, {"A": node.inputs[0]})


def _pool(graph: OnnxGraph, node: Node) -> Built:
    """Rounding up takes ONNX's own count of windows: versions differ on those that lie in the padding."""
    if node.op.startswith("Global") and len(graph.shape(node, node.inputs[0])) > 4:
        shape = graph.shape(node, node.inputs[0])
        return Built(reduction(shape=shape, over=range(2, len(shape))), {"I": node.inputs[0]})
    if len(graph.shape(node, node.inputs[0])) > 4:
        return Built(volume_pool(graph, node), {"I": node.inputs[0]})
    data = _spatial(graph, node, node.inputs[0])
    if node.op.startswith("Global"):
        return Built(pool2d(n=data[0], c=data[1], h=data[2], w=data[3]), {"I": node.inputs[0]})
    kernel = _kernel(graph, node, ())
    stride, dilation = _pair(graph, node, "strides"), _pair(graph, node, "dilations")
    pads = list(_pads(graph, node, data[2:], kernel, stride, dilation))
    if node.attributes.get("ceil_mode"):
        positions = _spatial(graph, node, node.outputs[0])[2:]
        for i in (0, 1):
            reach = (positions[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1
            pads[2 + i] = max(pads[2 + i], reach - data[2 + i] - pads[i])
    operator = pool2d(
        n=data[0],
        c=data[1],
        r=kernel[0],
        s=kernel[1],
        h=data[2],
        w=data[3],
        stride=stride,
        dilation=dilation,
        pad=pads,
    )
    return Built(operator, {"I": node.inputs[0]}, before=_before(graph, node, pads))


def _pointwise(graph: OnnxGraph, node: Node) -> Built:
    shapes = [graph.shape(node, tensor) for tensor in node.data]
    operator = elementwise(shape=graph.shape(node, node.outputs[0]), operands=shapes)
    names = [tensor.name for tensor in operator.inputs]
    return Built(operator, dict(zip(names, node.data, strict=True)))


def _reduction(graph: OnnxGraph, node: Node) -> Built:
    """The axes may be attributes or a tensor; the result's shape states them where axes are kept."""
    before, after = graph.shape(node, node.inputs[0]), graph.shape(node, node.outputs[0])
    over = node.attributes.get("axes")
    if node.op in ("ArgMax", "ArgMin"):
        over = [node.attributes.get("axis", 0)]
    elif len(node.inputs) > 1 and node.inputs[1] in graph.numbers:
        over = graph.numbers[node.inputs[1]]
    if not over and len(after) == len(before):
        over = [i for i, (b, a) in enumerate(zip(before, after, strict=True)) if b != a]
    if not over and not after:
        over = range(len(before))
    if not over:
        raise InputError(
            graph.where, node.label, "expected keepdims=1, or axes that do not depend on the data"
        )
    return Built(reduction(shape=before, over=over), {"I": node.inputs[0]})


def _weighted(graph: OnnxGraph, node: Node, operator: Operator, data: str, weights: str) -> Built:
    operands = {name: node.inputs[i] for i, name in enumerate((data, weights)) if node.inputs[i] in node.data}
    if len(node.inputs) > 2 and node.inputs[2] in node.data:
        raise InputError(graph.where, node.label, "a bias that is not a constant is not supported")
    return Built(operator, operands, stored_weights=weights not in operands)


def _before(graph: OnnxGraph, node: Node, pads: Sequence[int]) -> tuple[int, ...]:
    """Padding before the first element of each spatial axis that the data have."""
    axes = len(graph.shape(node, node.inputs[0])) - 2
    return tuple(pads[:2])[2 - axes :]


def _spatial(graph: OnnxGraph, node: Node, tensor: str) -> tuple[int, int, int, int]:
    """Shape with two spatial axes; a single one counts as columns of one row."""
    shape = graph.shape(node, tensor)
    if len(shape) not in (3, 4):
        raise InputError(graph.where, node.label, f"expected 1 or 2 spatial axes, got shape {list(shape)}")
    return (shape[0], shape[1], 1, shape[2]) if len(shape) == 3 else (shape[0], shape[1], shape[2], shape[3])


def _kernel(graph: OnnxGraph, node: Node, weights: Sequence[int]) -> tuple[int, int]:
    kernel = node.attributes.get("kernel_shape") or weights
    return _two(graph, node, "kernel_shape", kernel, 1)


def _pair(graph: OnnxGraph, node: Node, attribute: str, default: int = 1) -> tuple[int, int]:
    return _two(graph, node, attribute, node.attributes.get(attribute) or (default, default), default)


def _two(graph: OnnxGraph, node: Node, field: str, values: Sequence[int], filler: int) -> tuple[int, int]:
    if len(values) not in (1, 2):
        raise InputError(graph.where, node.label, f"{field}: expected 1 or 2 numbers, got {len(values)}")
    return (filler, values[0]) if len(values) == 1 else (values[0], values[1])


def _pads(
    graph: OnnxGraph,
    node: Node,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:
    """Padding (top, left, bottom, right), from ``pads`` or worked out for ``auto_pad``."""
    automatic = node.attributes.get("auto_pad", "NOTSET")
    if automatic == "VALID":
        return 0, 0, 0, 0
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        begins, ends = [], []
        for size, taps, step, spread in zip(sizes, kernel, stride, dilation, strict=True):
            positions = -(-size // step)
            total = max(0, (positions - 1) * step + (taps - 1) * spread + 1 - size)
            small, large = total // 2, total - total // 2
            begins.append(small if automatic == "SAME_UPPER" else large)
            ends.append(large if automatic == "SAME_UPPER" else small)
        return (*begins, *ends)
    pads = node.attributes.get("pads") or (0, 0, 0, 0)
    if len(pads) not in (2, 4):
        raise InputError(graph.where, node.label, f"pads: expected 2 or 4 numbers, got {len(pads)}")
    return (0, pads[0], 0, pads[1]) if len(pads) == 2 else tuple(pads)


BUILDERS: dict[str, Callable[[OnnxGraph, Node], Built]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Einsum": _einsum,
    "STFT": _short_transforms,
    "DFT": _transform,
    **dict.fromkeys(POOLING, _pool),
    **dict.fromkeys(POINTWISE | CELLS | NORMALISING, _pointwise),
    **dict.fromkeys(REDUCING, _reduction),
}
