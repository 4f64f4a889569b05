"""Multiply-accumulates of a model that is run: counted from the arrays that its nodes read and write.

Nothing of the import is used: the onnx package's reference evaluator runs the model, branches, loops and
functions included, and every node that runs adds the products that its arrays imply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops._op import OpRunBinary, OpRunUnary


def executed_macs(model: onnx.ModelProto, sizes: dict[str, tuple[int, ...]], seed: int = 0) -> int:
    """Products of one run on random inputs of these shapes."""
    draw = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = sizes[value.name]
        whole = np.issubdtype(kind, np.integer) or kind == np.bool_
        feeds[value.name] = (
            draw.integers(0, 2, shape).astype(kind) if whole else draw.random(shape).astype(kind)
        )
    with counted() as counts:
        ReferenceEvaluator(model).run(None, feeds)
    return sum(counts)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Products of every node that is run meanwhile."""
    counts: list[int] = []
    running: set[int] = set()
    originals = {kind: kind.run for kind in (OpRun, OpRunUnary, OpRunBinary)}

    def counting(original: Any) -> Any:
        def run(self: Any, *arrays: Any, **more: Any) -> Any:
            outermost = id(self) not in running
            running.add(id(self))
            results = original(self, *arrays, **more)
            if outermost:
                running.discard(id(self))
                counts.append(products(self.onnx_node, arrays, results))
            return results

        return run

    for kind, original in originals.items():
        kind.run = counting(original)
    try:
        yield counts
    finally:
        for kind, original in originals.items():
            kind.run = original


def products(node: onnx.NodeProto, arrays: Any, results: Any) -> int:
    """Products that one node computes."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    shapes = [getattr(array, "shape", ()) for array in arrays]
    made = math.prod(np.shape(results[0])) if results else 0
    if node.op_type in ("Conv", "ConvInteger"):
        return made * math.prod(shapes[1][1:])
    if node.op_type == "QLinearConv":
        return made * math.prod(shapes[3][1:])
    if node.op_type == "ConvTranspose":
        return math.prod(shapes[0]) * math.prod(shapes[1][1:])
    if node.op_type in ("MatMul", "MatMulInteger", "QLinearMatMul"):
        return made * shapes[0][-1]
    if node.op_type == "Gemm":
        return made * shapes[0][0 if attributes.get("transA") else 1]
    if node.op_type in ("LSTM", "GRU", "RNN"):
        steps, batch, features = shapes[0]
        directions, rows, hidden = shapes[2]
        return steps * batch * directions * rows * (features + hidden)
    if node.op_type == "Einsum":
        sizes: dict[str, int] = {}
        for term, shape in zip(
            attributes["equation"].decode().partition("->")[0].split(","), shapes, strict=True
        ):
            sizes.update(zip(term.strip(), shape, strict=True))
        return math.prod(sizes.values()) if len(shapes) > 1 else 0
    if node.op_type == "Attention":
        query, key, value = arrays[:3]
        heads, groups = (
            (attributes["q_num_heads"], attributes["kv_num_heads"])
            if query.ndim == 3
            else (query.shape[1], key.shape[1])
        )
        batch, length = query.shape[0], query.shape[-2]
        head = query.shape[-1] // (heads if query.ndim == 3 else 1)
        columns = value.shape[-1] // (groups if query.ndim == 3 else 1)
        past = arrays[4].shape[2] if len(arrays) > 4 and arrays[4] is not None else 0
        return int(batch * heads * length * (key.shape[-2] + past) * (head + columns))
    if node.op_type == "STFT":
        batch, frames, bins, _ = np.shape(results[0])
        taps = shapes[2][0] if len(shapes) > 2 and arrays[2] is not None else int(arrays[3])
        return int(batch * frames * bins * 2 * taps)
    if node.op_type == "DFT":
        axis = int(arrays[2]) if len(arrays) > 2 and arrays[2] is not None else attributes.get("axis", 1)
        return made * shapes[0][axis] * shapes[0][-1]
    return 0
