"""Learned parameters of ONNX nodes: which of their constants training would change."""

from __future__ import annotations

import math

from tilewright.workloads.network import Parameter
from tilewright.workloads.onnx.graph import Node, OnnxGraph

_TERMS = ("Add", "Sub", "Mul", "Div")
LEARNED: dict[str, tuple[int, ...]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (0, 1, 2),
    "MatMul": (0, 1),
    "BatchNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "RMSNormalization": (1,),
    "PRelu": (1,),
    "Gather": (0,),
    **dict.fromkeys(_TERMS, (0, 1)),
}
"""Inputs that are parameters where they are constants.

The running mean and variance of a batch normalisation are none: they are measured, not learned.
"""


def learned_parameters(graph: OnnxGraph, node: Node) -> tuple[Parameter, ...]:
    """Parameters that a node reads, each stored tensor once.

    A single number that is added or multiplied is a constant of the formula (a scale by the root of a width,
    a half), not a parameter; neither is anything computed from constants, such as a table of sines.
    """
    parameters: dict[str, Parameter] = {}
    for at in LEARNED.get(node.op, ()):
        root = graph.stored.get(node.inputs[at]) if len(node.inputs) > at else None
        if root is None or root not in graph.shapes:
            continue
        elements = math.prod(graph.shapes[root])
        if node.op not in _TERMS or elements > 1:
            parameters[root] = Parameter(root, elements)
    return tuple(parameters.values())
