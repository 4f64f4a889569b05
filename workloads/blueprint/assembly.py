"""Networks written down layer by layer, where every pass over data is a layer of its own.

A `tilewright.workloads.blueprint.Blueprint` becomes an ONNX model first, whose import merges an activation
into the layer before it.  An `Assembly` keeps norms, softmax, activations, residual sums and what a cache
takes in as layers, each with its own operations and bytes.  Vectors of parameters (biases, scales and shifts)
count as parameters; their bytes are left out, here as everywhere in the catalog.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from tilewright.foundation.errors import InputError
from tilewright.workloads.alignment import Arrival, aligned, rows_of
from tilewright.workloads.mapping.layer_fields import LARGEST
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import elementwise, gemm, matmul
from tilewright.workloads.network import Layer, Link, Network, Parameter
from tilewright.workloads.views import View
from tilewright.workloads.widths import MACHINE, Kind, parse_widths, with_widths


@dataclass(frozen=True, slots=True)
class Piece:
    """Data of one layer, or from outside, on its way to a reader; the fields are those of a `Link`."""

    producer: str | None
    tensor: str
    elements: int
    channel: int | None = 0
    moves: tuple[str, ...] = ()
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Data:
    """A tensor that layers read.

    Parameters
    ----------
    shape : its axes
    pieces : where it comes from
    kind : what it is, for the width of its elements
    """

    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    kind: Kind = Kind.ACTIVATIONS

    @property
    def elements(self) -> int:
        """All of them."""
        return math.prod(self.shape)

    def moved(self, shape: Sequence[int], *moves: str) -> Data:
        """The same data, or a part of it, under other axes.

        Parameters
        ----------
        shape : the new axes
        moves : what was done, such as ``Reshape``
        """
        elements = math.prod(shape)
        pieces = tuple(
            replace(
                piece,
                elements=min(piece.elements, elements),
                channel=None,
                moves=(*piece.moves, *moves),
                view=None,
            )
            for piece in self.pieces
        )
        return replace(self, shape=tuple(shape), pieces=pieces)

    def rearranged(
        self, split: Sequence[int], order: Sequence[int], shape: Sequence[int], *moves: str
    ) -> Data:
        """The same data with axes split, put in another order, and joined.

        Parameters
        ----------
        split : axes to begin with
        order : the numbers of these axes, one behind the other
        shape : the new axes
        moves : what was done, such as ``Reshape``
        """
        pieces: list[Piece] = []
        for before, piece in zip(self.pieces, self.moved(shape, *moves).pieces, strict=True):
            apart = before.view.reshaped(split) if before.view is not None else None
            view = apart.transposed(order).reshaped(shape) if apart is not None else None
            pieces.append(replace(piece, view=view))
        return replace(self, shape=tuple(shape), pieces=tuple(pieces))

    def part(self, axis: int, start: int, size: int) -> Data:
        """Some elements of an axis, from one on."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        cut = self.moved(shape, "Slice")
        if len(self.pieces) > 1:
            return cut
        view = self.pieces[0].view
        return replace(cut, pieces=(replace(cut.pieces[0], view=view and view.sliced(axis, start, size)),))

    def joined(self, axis: int, other: Data) -> Data:
        """The same data, and behind it along an axis that of another."""
        size = self.shape[axis] + other.shape[axis]
        pieces = [
            replace(piece, view=before.view and before.view.placed(axis, start, size))
            for data, start in ((self, 0), (other, self.shape[axis]))
            for before, piece in zip(data.pieces, data.moved(data.shape, "Concat").pieces, strict=True)
        ]
        return replace(self, shape=(*self.shape[:axis], size, *self.shape[axis + 1 :]), pieces=tuple(pieces))


class Assembly:
    """Layers in the making: every method adds one and returns its result.

    Parameters
    ----------
    name : of the network
    batch : samples
    widths : bits of elements by kind of tensor, such as ``w4a16``; by default the machine's
    """

    def __init__(self, name: str, batch: int, widths: str = MACHINE) -> None:
        self.name = name
        self.batch = batch
        self.widths = parse_widths(widths)
        self._scopes: list[str] = []
        self._layers: dict[str, Layer] = {}
        self._links: list[Link] = []
        self._tables: list[Parameter] = []

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names of everything made inside begin with ``name.``."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def scoped(self, name: str) -> str:
        """A name inside the present scope."""
        return ".".join([*self._scopes, name])

    def outside(self, name: str, shape: Sequence[int], *moves: str, kind: Kind = Kind.ACTIVATIONS) -> Data:
        """A tensor from outside the network.

        Parameters
        ----------
        name : inside the present scope
        shape : its axes
        moves : what was done to it, such as ``Gather``
        kind : for the width of its elements
        """
        full = self.scoped(name)
        channel = None if moves else 0
        return Data(tuple(shape), (Piece(None, full, math.prod(shape), channel, moves),), kind)

    def table(self, name: str, elements: int) -> None:
        """Parameters that no layer computes with, such as a table of word vectors."""
        self._tables.append(Parameter(self.scoped(name), elements))

    def learned(self, *parts: tuple[str, int]) -> tuple[Parameter, ...]:
        """Parameters of a layer: names inside the present scope, and elements."""
        return tuple(Parameter(self.scoped(name), elements) for name, elements in parts)

    def layer(
        self,
        name: str,
        source: str,
        operator: Operator,
        operands: Mapping[str, Data],
        shape: Sequence[int],
        *,
        learned: tuple[Parameter, ...] = (),
        kind: Kind = Kind.ACTIVATIONS,
        before: tuple[int, ...] = (),
    ) -> Data:
        """Any operator as a layer.

        Parameters
        ----------
        name : inside the present scope
        source : the operation, such as ``MatMul``
        operator : what it computes
        operands : the tensors of the operator that are other layers' results, or come from outside
        shape : axes of the result
        learned : its parameters
        kind : of the result, for the width of its elements
        before : elements of padding before the first row and column of windows

        Raises
        ------
        InputError : for a loop that is longer than machines' files may state
        """
        full = self.scoped(name)
        for dimension, bound in operator.bounds.items():
            if bound > LARGEST:
                message = f"the loop {dimension} has {bound:,} iterations, expected at most {LARGEST:,}"
                raise InputError(self.name, full, message)
        kinds = {tensor: data.kind for tensor, data in operands.items()}
        made = with_widths(operator, kinds, kind, self.widths)
        weighted = not {"B", "W"} & operands.keys()
        rows = rows_of(source, len(made.output.axes))
        self._layers[full] = Layer(full, made, source, (), (full,), weighted, learned, rows)
        for operand, data in operands.items():
            self._links += [
                self._linked(piece, full, operand, data, before if operand == "I" else ())
                for piece in data.pieces
            ]
        view = View.whole(shape) if math.prod(shape) == made.output.footprint(made.bounds) else None
        return Data(tuple(shape), (Piece(full, full, math.prod(shape), view=view),), kind)

    def _linked(self, piece: Piece, reader: str, operand: str, data: Data, before: tuple[int, ...]) -> Link:
        """The link of a piece of data to an operand, with its axes where they are known."""
        link = Link(piece.producer, reader, operand, piece.tensor, piece.elements, piece.channel, piece.moves)
        if piece.producer is None:
            return link
        view = piece.view if piece.view is not None and piece.view.shape == data.shape else None
        arrival = Arrival(view, piece.moves, len(data.pieces) == 1, before)
        made = self._layers
        return aligned(link, made[piece.producer].operator, made[reader].operator, arrival)

    def project(
        self, x: Data, features: int, name: str, *, bias: bool = False, weight: str | None = None
    ) -> Data:
        """Fully connected layer on the last axis, whatever stands before it.

        Parameters
        ----------
        x : of any shape; its last axis is reduced
        features : size of the result's last axis
        name : of the layer, inside the present scope
        bias : whether one is added
        weight : full name of parameters to use again; by default new ones
        """
        rows, inputs = math.prod(x.shape[:-1]), x.shape[-1]
        stored = Parameter(weight or self.scoped(f"{name}.weight"), inputs * features)
        biases = self.learned((f"{name}.bias", features)) if bias else ()
        shape = (*x.shape[:-1], features)
        operator = _gemm(rows, features, inputs)
        return self.layer(name, "MatMul", operator, {"A": x}, shape, learned=(stored, *biases))

    def products(
        self,
        a: Data,
        b: Data | tuple[Parameter, ...],
        sizes: tuple[int, int, int, int],
        shape: Sequence[int],
        name: str,
    ) -> Data:
        """Products of pairs of matrices, ``M x K`` by ``K x N``.

        Parameters
        ----------
        a : the first factors
        b : the second ones: data, or parameters
        sizes : how many pairs, and ``M``, ``N`` and ``K``
        shape : axes of the result
        name : of the layer, inside the present scope
        """
        operator = _matmul(*sizes)
        if isinstance(b, Data):
            return self.layer(name, "MatMul", operator, {"A": a, "B": b}, shape)
        return self.layer(name, "MatMul", operator, {"A": a}, shape, learned=b)

    def pointwise(
        self,
        name: str,
        source: str,
        *values: Data,
        shape: Sequence[int] | None = None,
        learned: tuple[Parameter, ...] = (),
        kind: Kind = Kind.ACTIVATIONS,
        joined: bool = True,
    ) -> Data:
        """One pass over values: an element of the result needs one element of each.

        Parameters
        ----------
        name : of the layer, inside the present scope
        source : the operation, such as ``Add``
        values : what is read; axes that are missing on the left, or 1, broadcast
        shape : axes of the result; by default the first value's
        learned : its parameters
        kind : of the result
        joined : whether axes in front of the last that no value broadcasts along are one loop
        """
        full = tuple(shape or values[0].shape)
        operator = _elementwise(full, tuple(value.shape for value in values), joined)
        names = [tensor.name for tensor in operator.inputs]
        operands = dict(zip(names, values, strict=True))
        return self.layer(name, source, operator, operands, full, learned=learned, kind=kind)

    def norm(self, x: Data, name: str, *, shift: bool = False, width: int | None = None) -> Data:
        """Normalisation along the last axis, one pass over the data.

        Parameters
        ----------
        x : of any shape
        name : of the layer, inside the present scope
        shift : whether there is a shift beside the scale (layer normalisation) or not (root mean square)
        width : parameters of the scale; by default the size of the last axis
        """
        size = width or x.shape[-1]
        learned = self.learned((f"{name}.scale", size), *([(f"{name}.shift", size)] if shift else []))
        return self.pointwise(name, "LayerNormalization" if shift else "RMSNormalization", x, learned=learned)

    def add(self, x: Data, y: Data, name: str) -> Data:
        """Sum of two values of one shape."""
        return self.pointwise(name, "Add", x, y)

    def hold(self, network: Network) -> None:
        """Count the parameters of another network that this one does not compute with."""
        own = {parameter.name for layer in self._layers.values() for parameter in layer.learned or ()}
        own |= {table.name for table in self._tables}
        held = {parameter.name: parameter for parameter in network.tables}
        for layer in network.layers:
            held |= {parameter.name: parameter for parameter in layer.learned or ()}
        self._tables += [parameter for name, parameter in held.items() if name not in own]

    def network(self) -> Network:
        """What has been written down."""
        return Network(
            self.name,
            self._layers.values(),
            self._links,
            batch=self.batch,
            tables=self._tables,
            every_layer=True,
        )


@cache
def _gemm(rows: int, features: int, inputs: int) -> Operator:
    return gemm(m=rows, n=features, k=inputs)


@cache
def _matmul(pairs: int, m: int, n: int, k: int) -> Operator:
    return matmul(m=m, n=n, k=k, batch=pairs)


@cache
def _elementwise(shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...], joined: bool) -> Operator:
    if joined and len(shape) > 2 and all(operand == shape for operand in operands):
        merged = (math.prod(shape[:-1]), shape[-1])
        return elementwise(shape=merged, operands=len(operands))
    return elementwise(shape=shape, operands=operands)
