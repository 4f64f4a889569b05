"""Quantised and fused nodes as the operations of ONNX that they compute.

Scales and zero points are not operands of a layer; sums and rounding behind a product are part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.workloads.onnx.expansion.emitter import Emitter, Rewriter


def like(op: str, *positions: int) -> Rewriter:
    """The operation `op` on the inputs at these positions."""

    def rewrite(emit: Emitter) -> None:
        emit.rewritten(op, [emit.input(position) for position in positions])

    return rewrite


def product(*positions: int, bias: int | None = None) -> Rewriter:
    """A product of two operands, which may be transposed, and a sum where one is given."""

    def rewrite(emit: Emitter) -> None:
        operands = []
        for position, flag in zip(positions, ("transA", "transB"), strict=True):
            tensor = emit.input(position)
            if emit.number(flag):
                shape = emit.shape(tensor)
                turned = (*shape[:-2], shape[-1], shape[-2])
                tensor = _transposed(emit, tensor, turned, position)
            operands.append(tensor)
        _sum(emit, "MatMul", operands, "" if bias is None else emit.input(bias))

    return rewrite


def packed_product(emit: Emitter) -> None:
    """``MatMulNBits``: weights of few bits, K x N by its attributes."""
    rows, columns = emit.number("K"), emit.number("N")
    weights = emit.stored(f"{emit.input(1)}/unpacked", (rows, columns))
    _sum(emit, "MatMul", [emit.input(0), weights], emit.input(5))


def convolution(emit: Emitter) -> None:
    """``FusedConv``: a convolution, a sum with a further tensor, an activation."""
    bias = [emit.input(2)] if emit.has(2) else []
    operands = [emit.input(0), emit.input(1), *bias]
    if not emit.has(3):
        emit.rewritten("Conv", operands)
        return
    shape = emit.shape(emit.origin.outputs[0])
    attributes = {k: v for k, v in emit.origin.attributes.items() if not k.startswith("activation")}
    made = emit.node("Conv", operands, shape, "convolution", **attributes)
    emit.node("Add", [made, emit.input(3)], shape, "sum", emit.origin.outputs[0])


def normalised_sum(op: str, bias: int) -> Rewriter:
    """``SkipLayerNormalization`` and the like: a sum, then a normalisation; the sum may be a result too."""

    def rewrite(emit: Emitter) -> None:
        shape = emit.shape(emit.input(0))
        outputs = [*emit.origin.outputs, "", "", ""]
        terms = [emit.input(0), emit.input(1), *filter(None, [emit.input(bias)])]
        total = emit.node("Add", terms[:2], shape, "sum", outputs[3] if len(terms) == 2 else None)
        if len(terms) > 2:
            total = emit.node("Add", [total, terms[2]], shape, "bias", outputs[3] or None)
        if outputs[0]:
            emit.node(op, [total, emit.input(2)], shape, "", outputs[0])

    return rewrite


def embedded(emit: Emitter) -> None:
    """``EmbedLayerNormalization``: rows of tables, their sum, a normalisation."""
    shape = emit.shape(emit.origin.outputs[0])
    total = emit.node("Gather", [emit.input(2), emit.input(0)], shape, "words")
    if emit.has(1) and emit.has(4):
        kinds = emit.node("Gather", [emit.input(4), emit.input(1)], shape, "segments")
        total = emit.node("Add", [total, kinds], shape, "with_segments")
    total = emit.node("Add", [total, emit.input(3)], shape, "with_places")
    emit.node("LayerNormalization", [total, emit.input(5), emit.input(6)], shape, "", emit.origin.outputs[0])


def with_bias(emit: Emitter) -> None:
    """A product whose bias is computed: the product, then a sum."""
    if emit.input(2) not in emit.activations:
        emit.nodes.append(emit.origin)
        return
    shape = emit.shape(emit.origin.outputs[0])
    operands = [emit.input(0), emit.input(1)]
    made = emit.node(emit.origin.op, operands, shape, "product", **emit.origin.attributes)
    bias = emit.input(2)
    if emit.origin.op != "Gemm":
        ones = (1,) * (len(shape) - 2)
        bias = emit.node("Reshape", [bias], (*emit.shape(bias), *ones), "channels")
    emit.node("Add", [made, bias], shape, "bias", emit.origin.outputs[0])


def concatenated(emit: Emitter) -> None:
    """``QLinearConcat``: every third input behind a scale and a zero point."""
    emit.rewritten("Concat", [emit.input(i) for i in range(2, len(emit.origin.inputs), 3)])


def global_pool(emit: Emitter) -> None:
    """``QLinearGlobalAveragePool``, with channels second or last."""
    if not emit.number("channels_last"):
        emit.rewritten("GlobalAveragePool", [emit.input(0)])
        return
    axes = list(range(1, len(emit.shape(emit.input(0))) - 1))
    emit.rewritten("ReduceMean", [emit.input(0)], axes=axes, keepdims=1)


def _transposed(emit: Emitter, tensor: str, shape: Sequence[int], position: int) -> str:
    if tensor in emit.activations:
        return emit.node("Transpose", [tensor], shape, f"transposed{position}")
    return emit.stored(f"{tensor}/transposed", shape, emit.graph.stored.get(tensor))


def _sum(emit: Emitter, op: str, operands: Sequence[str], bias: str) -> None:
    if not bias:
        emit.rewritten(op, operands)
        return
    shape = emit.shape(emit.origin.outputs[0])
    made = emit.node(op, operands, shape, "product")
    emit.node("Add", [made, bias], shape, "bias", emit.origin.outputs[0])
