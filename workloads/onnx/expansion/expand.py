"""The nodes of a graph with those expanded that stand for several layers."""

from __future__ import annotations

from dataclasses import replace

from tilewright.foundation.errors import BudgetError, InputError
from tilewright.foundation.loading import check_limit
from tilewright.workloads.onnx.budgets import MOST_NODES
from tilewright.workloads.onnx.expansion import attention, quantised
from tilewright.workloads.onnx.expansion.emitter import Emitter, Rewriter
from tilewright.workloads.onnx.expansion.recurrent import recurrent
from tilewright.workloads.onnx.graph import Node, OnnxGraph
from tilewright.workloads.onnx.operations import MICROSOFT

_POINTWISE = {
    "BiasAdd": "Add",
    "BiasGelu": "Gelu",
    "FastGelu": "Gelu",
    "Gelu": "Gelu",
    "QuickGelu": "Swish",
    "LayerNormalization": "LayerNormalization",
    "SimplifiedLayerNormalization": "SimplifiedLayerNormalization",
}
REWRITERS: dict[tuple[str, str], Rewriter] = {
    **dict.fromkeys((("", "LSTM"), ("", "GRU"), ("", "RNN"), (MICROSOFT, "DynamicQuantizeLSTM")), recurrent),
    **dict.fromkeys((("", "Conv"), ("", "ConvTranspose"), ("", "Gemm")), quantised.with_bias),
    ("", "Attention"): attention.attention,
    ("", "RotaryEmbedding"): quantised.like("RotaryEmbedding", 0),
    ("", "QLinearConv"): quantised.like("Conv", 0, 3, 8),
    ("", "ConvInteger"): quantised.like("Conv", 0, 1),
    ("", "QLinearMatMul"): quantised.like("MatMul", 0, 3),
    ("", "MatMulInteger"): quantised.like("MatMul", 0, 1),
    **{(MICROSOFT, name): quantised.like(op, 0, 1) for name, op in _POINTWISE.items()},
    **dict.fromkeys(((MICROSOFT, "Attention"), (MICROSOFT, "QAttention")), attention.microsoft_attention),
    (MICROSOFT, "MultiHeadAttention"): attention.multi_head,
    (MICROSOFT, "GroupQueryAttention"): attention.grouped,
    (MICROSOFT, "RotaryEmbedding"): quantised.like("RotaryEmbedding", 0),
    (MICROSOFT, "QuantizeLinear"): quantised.like("QuantizeLinear", 0),
    (MICROSOFT, "DequantizeLinear"): quantised.like("DequantizeLinear", 0),
    (MICROSOFT, "QLinearAdd"): quantised.like("Add", 0, 3),
    (MICROSOFT, "QLinearMul"): quantised.like("Mul", 0, 3),
    (MICROSOFT, "QLinearSigmoid"): quantised.like("Sigmoid", 0),
    (MICROSOFT, "QLinearLeakyRelu"): quantised.like("LeakyRelu", 0),
    (MICROSOFT, "QLinearSoftmax"): quantised.like("Softmax", 0),
    (MICROSOFT, "QLinearConcat"): quantised.concatenated,
    (MICROSOFT, "QLinearConv"): quantised.like("Conv", 0, 3, 8),
    (MICROSOFT, "QLinearAveragePool"): quantised.like("AveragePool", 0),
    (MICROSOFT, "QLinearGlobalAveragePool"): quantised.global_pool,
    (MICROSOFT, "FusedConv"): quantised.convolution,
    (MICROSOFT, "QGemm"): quantised.product(0, 3, bias=6),
    (MICROSOFT, "FusedGemm"): quantised.product(0, 1, bias=2),
    (MICROSOFT, "FusedMatMul"): quantised.product(0, 1),
    (MICROSOFT, "DynamicQuantizeMatMul"): quantised.product(0, 1, bias=4),
    (MICROSOFT, "MatMulIntegerToFloat"): quantised.product(0, 1, bias=6),
    (MICROSOFT, "MatMulNBits"): quantised.packed_product,
    (MICROSOFT, "EmbedLayerNormalization"): quantised.embedded,
    (MICROSOFT, "SkipLayerNormalization"): quantised.normalised_sum("LayerNormalization", 4),
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): quantised.normalised_sum(
        "SimplifiedLayerNormalization", 3
    ),
}
"""By domain and operation."""


def expanded(graph: OnnxGraph) -> OnnxGraph:
    """The graph with other nodes in place of those of `REWRITERS`.

    The given graph gains the shapes of what is made.  A node that cannot be expanded stays, among those that
    are not supported.

    Raises
    ------
    BudgetError : for more nodes than a model may have
    """
    if not any((node.domain, node.op) in REWRITERS for node in graph.nodes):
        return graph
    emit = Emitter(graph, {*graph.inputs, *(name for node in graph.nodes for name in node.outputs if name)})
    nodes: list[Node] = []
    for node in graph.nodes:
        rewrite = REWRITERS.get((node.domain, node.op))
        if rewrite is None or node.label in graph.unsupported:
            nodes.append(node)
            continue
        check_limit(graph.where, node.label)
        emit.begin(node)
        try:
            rewrite(emit)
            nodes.extend(emit.nodes)
        except BudgetError:
            raise
        except InputError as error:
            if all(name in graph.shapes for name in node.inputs if name):
                graph.unsupported[node.label] = error.message
            nodes.append(node)
        if len(nodes) > MOST_NODES:
            message = f"expected at most {MOST_NODES:,} nodes in a model, steps of recurrent ones counted"
            raise BudgetError(graph.where, node.label, message)
    placed = tuple(node if node.position == i else replace(node, position=i) for i, node in enumerate(nodes))
    return replace(graph, nodes=placed, inputs=(*graph.inputs, *emit.states))
