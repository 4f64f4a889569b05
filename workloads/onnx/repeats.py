"""Heads of keys and values that a model repeats for several heads of queries (``repeat_kv``).

Models without an operation for grouped queries expand batch x heads x tokens x features by a new axis behind
the heads and join the two.  A product with the result reads each head once for all queries that share it.
"""

from __future__ import annotations

import math

from tilewright.workloads.onnx.graph import Node, OnnxGraph


def repeats(graph: OnnxGraph, tensor: str) -> int:
    """How often each matrix of a tensor stands in it, one copy behind the other; 1 where nothing is known.

    Parameters
    ----------
    tensor : matrices along its last two axes, which may have been transposed on their way
    """
    producers = {output: node for node in graph.nodes for output in node.outputs}
    node = producers.get(tensor)
    while node is not None and _keeps_batch(graph, node):
        tensor = node.inputs[0]
        node = producers.get(tensor)
    if node is None or node.op != "Reshape":
        return 1
    joined, expanded = graph.shapes.get(tensor), producers.get(node.inputs[0])
    if joined is None or expanded is None or expanded.op != "Expand":
        return 1
    wide, narrow = graph.shapes.get(node.inputs[0]), graph.shapes.get(expanded.inputs[0])
    if wide is None or narrow is None or len(wide) != len(narrow) or len(wide) < 4:
        return 1
    copies = wide[-3]
    behind_heads = (*wide[:-3], 1, *wide[-2:]) == narrow and wide[-2:] == joined[-2:]
    return copies if behind_heads and math.prod(wide[:-2]) == math.prod(joined[:-2]) else 1


def _keeps_batch(graph: OnnxGraph, node: Node) -> bool:
    """Whether a node moves nothing but the last two axes."""
    if node.op in ("Identity", "Cast"):
        return True
    axes = len(graph.shapes.get(node.inputs[0], ()))
    order = node.attributes.get("perm") or range(axes)[::-1]
    return node.op == "Transpose" and axes > 2 and list(order)[:-2] == list(range(axes - 2))
