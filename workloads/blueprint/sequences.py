"""Operations of fully connected, recurrent and attention networks; with them a blueprint is complete."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.workloads.blueprint.base import Value, elements
from tilewright.workloads.blueprint.images import Images


class Blueprint(Images):
    """A network in the making: every operation adds a node and returns its result."""

    def flatten(self, x: Value, name: str = "flatten") -> Value:
        """Batch x everything else."""
        shape = (x.shape[0], elements(x) // x.shape[0])
        return self.op("Flatten", [x], shape, name, axis=1)

    def dense(
        self,
        x: Value,
        features: int,
        *,
        bias: bool = True,
        act: str | None = None,
        name: str = "fc",
        weight: str | None = None,
    ) -> Value:
        """Fully connected layer on the rows of a matrix.

        Parameters
        ----------
        weight : a stored tensor of features x inputs to use again; by default a new one
        """
        if len(x.shape) != 2:
            raise self.error(name, f"expected rows x features, got {list(x.shape)}")
        stored = weight or self.weights(f"{name}.weight", (features, x.shape[1]))
        operands: list[Value | str] = [x, stored]
        if bias:
            operands.append(self.weights(f"{name}.bias", (features,)))
        value = self.op("Gemm", operands, (x.shape[0], features), name, transB=1)
        return self.act(value, act)

    def matmul(self, a: Value, b: Value, name: str = "matmul") -> Value:
        """Batched product of two activations; leading axes are equal."""
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
            raise self.error(name, f"multiplies {list(a.shape)} by {list(b.shape)}")
        return self.op("MatMul", [a, b], (*a.shape[:-1], b.shape[-1]), name)

    def reshape(self, x: Value, shape: Sequence[int], name: str | None = None) -> Value:
        """The same elements under other axes."""
        if math.prod(shape) != elements(x):
            raise self.error(name or "reshape", f"reshapes {list(x.shape)} to {list(shape)}")
        return self.op("Reshape", [x, self.constant(shape)], shape, name)

    def transpose(self, x: Value, order: Sequence[int], name: str | None = None) -> Value:
        """The axes in another order."""
        return self.op("Transpose", [x], [x.shape[i] for i in order], name, perm=list(order))

    def slice(self, x: Value, start: int, stop: int, *, axis: int = 1, name: str | None = None) -> Value:
        """Elements ``start`` to ``stop`` along an axis.

        Parameters
        ----------
        x : of any shape
        start, stop : the first element, and the one after the last
        axis : along which elements are taken
        name : of the node; numbered by default
        """
        if not 0 <= start < stop <= x.shape[axis]:
            raise self.error(name or "slice", f"takes {start}:{stop} of {x.shape[axis]} elements")
        shape = list(x.shape)
        shape[axis] = stop - start
        return self.op("Slice", [x, *(self.constant([bound]) for bound in (start, stop, axis))], shape, name)

    def project(
        self, x: Value, features: int, *, bias: bool = True, act: str | None = None, name: str = "projection"
    ) -> Value:
        """Fully connected layer on the last axis, whatever stands before it.

        Parameters
        ----------
        x : of any shape; its last axis is reduced
        features : size of the result's last axis
        bias : whether one is added
        act : activation behind it; none by default
        name : of the layer, within the present scope
        """
        stored = self.weights(f"{name}.weight", (x.shape[-1], features))
        value = self.op("MatMul", [x, stored], (*x.shape[:-1], features), name)
        if bias:
            value = self.op("Add", [value, self.weights(f"{name}.bias", (features,))], value.shape)
        return self.act(value, act)

    def attention(self, x: Value, memory: Value, heads: int, name: str = "attention") -> Value:
        """Multi-head attention of ``x`` over ``memory``, both batch x length x features.

        Masks change no shape and no count, and are left out.

        Parameters
        ----------
        x : gives the queries, and the length of the result
        memory : gives keys and values; ``x`` itself for self-attention
        heads : into which the features are divided evenly
        name : of the scope that holds its layers
        """
        n, length, features = x.shape
        with self.scope(name):
            split = (heads, features // heads)
            q, k, v = (
                self.reshape(self.project(source, features, name=part), (n, source.shape[1], *split))
                for source, part in ((x, "query"), (memory, "key"), (memory, "value"))
            )
            q, k, v = (
                self.transpose(operand, order)
                for operand, order in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3)))
            )
            scores = self.matmul(q, k, "scores")
            scaled = self.op("Div", [scores, self.scalar(math.sqrt(split[1]))], scores.shape)
            mixed = self.transpose(self.matmul(self.softmax(scaled), v, "mix"), (0, 2, 1, 3))
            return self.project(self.reshape(mixed, (n, length, features)), features, name="result")

    def softmax(self, x: Value, axis: int = -1) -> Value:
        """Normalised exponentials along an axis."""
        return self.op("Softmax", [x], x.shape, axis=axis)

    def layer_norm(self, x: Value, name: str = "norm") -> Value:
        """Normalisation of every row, with a learned scale and shift per feature."""
        stored = [self.weights(f"{name}.{part}", x.shape[-1:]) for part in ("scale", "shift")]
        return self.op("LayerNormalization", [x, *stored], x.shape, name, axis=-1)

    def lookup(self, tokens: Value, table: str, features: int, name: str = "embedding") -> Value:
        """One row of a stored table for every token: batch x length x features.

        Parameters
        ----------
        tokens : integers, batch x length
        table : name of the stored rows, shape (vocabulary, features)
        features : length of a row
        name : of the layer, within the present scope
        """
        return self.op("Gather", [table, tokens], (*tokens.shape, features), name, axis=0)

    def lstm_cell(self, x: Value, state: tuple[Value, Value], name: str = "lstm") -> tuple[Value, Value]:
        """One time step of a long short-term memory, without peepholes.

        The four gates are one product of the joined input and hidden state, as TensorFlow's cells compute
        them: ``units * 4`` outputs from ``inputs + units`` inputs.

        Parameters
        ----------
        x : batch x inputs
        state : hidden state and cell state, each batch x units

        Returns
        -------
        Hidden state and cell state after the step
        """
        hidden, cell = state
        units = hidden.shape[1]
        with self.scope(name):
            joined = self.concat(x, hidden, name="joined")
            gates = self.dense(joined, 4 * units, name="gates")
            i, g, f, o = (
                self.act(self.slice(gates, at * units, (at + 1) * units, name=part), kind)
                for at, (part, kind) in enumerate(
                    [
                        ("input", "Sigmoid"),
                        ("candidate", "Tanh"),
                        ("forget", "Sigmoid"),
                        ("output", "Sigmoid"),
                    ]
                )
            )
            kept, new = self.multiply(cell, f, "kept"), self.multiply(i, g, "new")
            cell = self.add(kept, new, name="cell")
            return self.multiply(o, self.act(cell, "Tanh"), "hidden"), cell
