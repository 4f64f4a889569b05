"""Bits of elements as a quantised ONNX model stores them, for the layers that multiply and accumulate.

An operand has the bits of the integers that it is dequantised from, a result those of the integers that it
is quantised to, if nothing else reads it; sums of integers have 32 bits inside a machine.  What is stored as
floating-point numbers has the machine's width: models are written in 32 bits whatever they are to run in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.onnx.graph import Node, OnnxGraph
from tilewright.workloads.onnx.operations import MOVING, POINTWISE, RENAMING
from tilewright.workloads.onnx.operators import Built

SUM_BITS = 32
"""Of sums of quantised products (``ConvInteger`` and ``MatMulInteger`` give 32-bit integers)."""

_QUANTISE = ("QuantizeLinear", "DynamicQuantizeLinear")


class StoredWidths:
    """Bits of the tensors of a graph.

    Parameters
    ----------
    graph : with the bits of tensors of integers
    """

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        self._maker = {name: node for node in graph.nodes for name in node.outputs if name}
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)

    def of(self, node: Node, built: Built) -> Operator:
        """The operator of a node whose tensors state their bits; unchanged without operands of integers."""
        operator = built.operator
        if not operator.is_mac or not node.outputs:
            return operator
        bits = {name: self.operand(tensor) for name, tensor in self._operands(node, built).items()}
        if not any(bits.values()):
            return operator
        by_role: dict[Role, set[int | None]] = {}
        for tensor in operator.inputs:
            by_role.setdefault(tensor.role, set()).add(bits.get(tensor.name))
        result = self.result(node.outputs[0])
        tensors = []
        for tensor in operator.tensors:
            if tensor.is_output:
                tensors.append(replace(tensor, bits=result, sum_bits=SUM_BITS))
            else:  # machines know one width for each role
                alike = by_role[tensor.role]
                tensors.append(replace(tensor, bits=bits.get(tensor.name) if len(alike) == 1 else None))
        return replace(operator, tensors=tuple(tensors))

    def operand(self, tensor: str) -> int | None:
        """Bits of the integers that a tensor has, or is dequantised from; ``None`` where it has others."""
        root = self._graph.stored.get(tensor, tensor)
        while root not in self._graph.bits and root in self._maker:
            node = self._maker[root]
            if node.op == "DequantizeLinear" or (node.op in RENAMING | MOVING and len(node.data) == 1):
                root = node.inputs[0]
            else:
                break
        return self._graph.bits.get(root)

    def result(self, tensor: str) -> int | None:
        """Bits of the integers that a result is quantised to by its only reader, behind activations."""
        while tensor not in self._graph.bits and tensor not in self._graph.outputs:
            readers = self._readers.get(tensor, [])
            if len(readers) != 1:
                break
            (node,) = readers
            if node.op in _QUANTISE:
                return self._graph.bits.get(node.outputs[0])
            if node.op not in POINTWISE | RENAMING | MOVING or len(node.data) != 1 or not node.outputs:
                break
            tensor = node.outputs[0]
        return self._graph.bits.get(tensor)

    def _operands(self, node: Node, built: Built) -> Mapping[str, str]:
        """ONNX tensors by operand; the one that is no activation is the first constant."""
        names = [tensor.name for tensor in built.operator.inputs]
        constants = [name for name in node.inputs if name and name not in node.data]
        missing = [name for name in names if name not in built.operands]
        return {**built.operands, **dict(zip(missing, constants, strict=False))}
