"""The bookkeeping of a blueprint: nodes, names, shapes, weights, and the ONNX model that they make.

A network is written down once, as operations on values.  Its ONNX model follows from that, and its `Network`
is the import of that model, so that a built-in network and the same network from a file are equal layer by
layer.  Weights have shapes and no values: they are zeros made by ``ConstantOfShape``, as in the models that
the onnx package ships, and a file stays small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.foundation.errors import InputError
from tilewright.workloads.network import Network
from tilewright.workloads.onnx.importer import load_onnx

OPSET, IR_VERSION = 20, 9


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the network: what an operation returns and others take."""

    name: str
    shape: tuple[int, ...]

    @property
    def channels(self) -> int:
        """Size of the second axis: channels of an image, features of a row."""
        return self.shape[1]

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of an image."""
        return self.shape[2], self.shape[3]


class Base:
    """Names, nodes and weights; the operations are added by the classes that follow.

    Parameters
    ----------
    name : the network's name, also that of its ONNX graph
    batch : samples, the first axis of every input
    """

    def __init__(self, name: str, batch: int) -> None:
        if batch < 1:
            raise InputError(name, "batch", f"expected at least 1, got {batch}")
        self.name = name
        self.batch = batch
        self._scopes: list[str] = []
        self._taken: set[str] = set()
        self._nodes: list[onnx.NodeProto] = []
        self._sizes: dict[tuple[int, ...], str] = {}
        self._initializers: list[TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[Value] = []
        self._read: set[str] = set()
        self._made: dict[str, Value] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names of everything made inside begin with ``name.``."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def input(self, name: str, shape: Sequence[int], *, integers: bool = False) -> Value:
        """A tensor that comes from outside; the batch is its first axis."""
        full = (self.batch, *shape)
        kind = TensorProto.INT64 if integers else TensorProto.FLOAT
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(full)))
        self._taken.add(name)
        return Value(name, full)

    def image(self, channels: int, rows: int, columns: int | None = None) -> Value:
        """The input picture, batch x channels x rows x columns."""
        return self.input("image", (channels, rows, columns or rows))

    def output(self, *values: Value) -> None:
        """Name results that leave the network; without a call they are the values that nothing reads."""
        self._outputs.extend(values)

    def weights(self, name: str, shape: Sequence[int]) -> str:
        """A stored tensor of the given shape, by its full name; the values are zeros."""
        return self._filled(name, shape, 0.0)

    def op(
        self,
        kind: str,
        inputs: Sequence[Value | str],
        shape: Sequence[int],
        name: str | None = None,
        **attributes: Any,
    ) -> Value:
        """One ONNX operation with one result.

        Parameters
        ----------
        kind : the operation
        inputs : values, or names of stored tensors; an empty text where an optional one is left out
        shape : axes of the result
        name : of the node, inside the scope; by default the first operand's with the operation behind it
        """
        names = [input.name if isinstance(input, Value) else input for input in inputs]
        full = self._unique(f"{names[0]}.{kind.lower()}" if name is None else self._scoped(name))
        self._nodes.append(helper.make_node(kind, names, [full], full, **attributes))
        self._read.update(names)
        value = Value(full, tuple(shape))
        self._made[full] = value
        return value

    def constant(self, values: Sequence[int], name: str = "numbers") -> str:
        """Numbers such as a target shape, stored with their values."""
        full = self._unique(name)
        self._initializers.append(numpy_helper.from_array(np.array(values, np.int64), full))
        return full

    def scalar(self, value: float) -> str:
        """One number, not learned."""
        full = self._unique("scalar")
        self._initializers.append(numpy_helper.from_array(np.array(value, np.float32), full))
        return full

    def error(self, field: str, message: str) -> InputError:
        """An error that names the network and the place."""
        return InputError(self.name, self._scoped(field), message)

    def onnx(self) -> onnx.ModelProto:
        """The ONNX model of what has been written down so far."""
        ends = self._outputs or [value for name, value in self._made.items() if name not in self._read]
        outputs = [helper.make_tensor_value_info(v.name, TensorProto.FLOAT, list(v.shape)) for v in ends]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, outputs, self._initializers)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="tilewright",
        )

    def network(self) -> Network:
        """The layers, as the import sees them."""
        return load_onnx(self.onnx(), name=self.name, bounded=False)

    def _filled(self, name: str, shape: Sequence[int], value: float) -> str:
        key = tuple(shape)
        if key not in self._sizes:
            self._sizes[key] = self.constant(key, "shape_" + "x".join(map(str, key)))
        full = self._unique(self._scoped(name))
        filling = helper.make_tensor("value", TensorProto.FLOAT, [1], [value])
        self._nodes.append(helper.make_node("ConstantOfShape", [self._sizes[key]], [full], value=filling))
        return full

    def _scoped(self, name: str) -> str:
        return ".".join([*self._scopes, name])

    def _unique(self, name: str) -> str:
        candidate, number = name, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate


def elements(value: Value) -> int:
    """Elements of a value."""
    return math.prod(value.shape)
