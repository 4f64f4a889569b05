"""A group of layers that may be fused: who reads whom, and which of their loops move together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tilewright.formulation.mapping.fused.softmax import obstacle
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.workloads.mapping.layer_reads import Reading as Reading
from tilewright.workloads.mapping.layer_reads import sizes_apart
from tilewright.workloads.mapping.operator import Axis, Operator, Tensor
from tilewright.workloads.network import Network

LoopName = tuple[str, str]
"""A layer and one of its dimensions."""


@dataclass(frozen=True)
class FusedGroup:
    """Layers in an order in which every one runs behind those that it reads.

    Parameters
    ----------
    layers : names and operators
    readings : operands that are results of other layers of the group
    leaving : layers whose results are needed outside the group
    rows : (layer, axis of its result) along which every element of the result needs all others
    softmaxes : layers for which these are the rows of a softmax
    online_softmax : whether a softmax between two layers may be taken in parts (`softmax.py`)

    Raises
    ------
    InputError : where an operand does not match the result that it reads
    """

    layers: tuple[tuple[str, Operator], ...]
    readings: tuple[Reading, ...]
    leaving: frozenset[str]
    rows: frozenset[tuple[str, int]] = frozenset()
    softmaxes: frozenset[str] = frozenset()
    online_softmax: bool = False

    def __post_init__(self) -> None:
        for reading in self.readings:
            reason = mismatch(self.operator(reading.reader), self.operator(reading.producer), reading)
            if reason is not None:
                raise InputError(reading.reader, f"reads.{reading.operand}", reason)

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """By the layer's name, in the order of the layers."""
        return dict(self.layers)

    def operator(self, layer: str) -> Operator:
        """What a layer computes."""
        return self.operators[layer]

    @property
    def names(self) -> list[str]:
        """Of the layers, in their order."""
        return list(self.operators)

    def reading(self, reader: str, operand: str) -> Reading | None:
        """Which result an operand is; ``None`` for one that comes from outside the group."""
        return self._by_operand.get((reader, operand))

    @cached_property
    def _by_operand(self) -> dict[tuple[str, str], Reading]:
        return {(reading.reader, reading.operand): reading for reading in self.readings}

    @cached_property
    def _by_producer(self) -> dict[str, tuple[Reading, ...]]:
        return {
            name: tuple(reading for reading in self.readings if reading.producer == name)
            for name in self.operators
        }

    def read_by(self, producer: str) -> tuple[Reading, ...]:
        """Who reads a layer's result inside the group."""
        return self._by_producer[producer]

    @cached_property
    def ranks(self) -> dict[LoopName, int]:
        """Which loops are one: those whose iterations are the same elements of an intermediate.

        A window, a stride or padding between two loops keeps them apart.
        """
        parent: dict[LoopName, LoopName] = {
            (name, dim): (name, dim) for name, operator in self.layers for dim in operator.bounds
        }

        def root(loop: LoopName) -> LoopName:
            while parent[loop] != loop:
                loop = parent[loop]
            return loop

        for reading in self.readings:
            reader, producer = self.operator(reading.reader), self.operator(reading.producer)
            for index, axis in enumerate(reader.tensor(reading.operand).axes):
                theirs = producer.output.axes[reading.axes[index]]
                if theirs.terms and self.reads_plainly(reading, index):
                    moving = moving_term(reader, axis)
                    parent[root((reading.producer, theirs.terms[0].dim))] = root((reading.reader, moving))
        roots = list(dict.fromkeys(root(loop) for loop in parent))
        return {loop: roots.index(root(loop)) for loop in parent}

    @cached_property
    def whole(self) -> frozenset[LoopName]:
        """Loops that no turn may cut: a softmax or a normalisation needs all their elements at once."""
        dims: set[LoopName] = set()
        for layer, dim in self.own_rows:
            if not all(self.takes_parts(reading) for reading in self.read_by(layer) or (None,)):
                dims.add((layer, dim))
        for reading in self.readings:
            if not self.takes_parts(reading):
                axes = self.operator(reading.reader).tensor(reading.operand).axes
                dims |= {(reading.reader, term.dim) for row in reading.rows for term in axes[row].terms}
        return frozenset(dims)

    @cached_property
    def own_rows(self) -> frozenset[LoopName]:
        """Loops along rows of layers that are a softmax or a normalisation themselves.

        They may be cut only together with a reader that takes the rows in parts.
        """
        return frozenset(
            (layer, term.dim)
            for layer, row in self.rows
            for term in self.operator(layer).output.axes[row].terms
        )

    def takes_parts(self, reading: Reading | None) -> bool:
        """Whether a reader may take a softmax in parts, row by row."""
        return reading is not None and (reading.reader, reading.operand) in self.online

    @cached_property
    def online(self) -> dict[LoopName, str]:
        """Per reader and operand that may come in parts of a softmax's rows, the reader's loop along them."""
        terms: dict[LoopName, str] = {}
        for reading in self.readings if self.online_softmax else ():
            rows = self.rows_of(reading)
            if rows and not obstacle(self, reading):
                reader = self.operator(reading.reader)
                axis = reader.tensor(reading.operand).axes[rows[0]]
                terms[reading.reader, reading.operand] = moving_term(reader, axis)
        return terms

    def rows_of(self, reading: Reading) -> tuple[int, ...]:
        """Axes of an operand along which what it reads needs all elements."""
        own = {index for index, place in enumerate(reading.axes) if (reading.producer, place) in self.rows}
        return tuple(sorted(own | set(reading.rows)))

    def reads_plainly(self, reading: Reading, index: int) -> bool:
        """Whether a reader takes an axis of its operand element by element, as the result has it."""
        reader = self.operator(reading.reader)
        axis = reader.tensor(reading.operand).axes[index]
        theirs = self.operator(reading.producer).output.axes[reading.axes[index]]
        return _is_plain(reader, axis) and reading.offsets[index] == 0 and axis.size == theirs.size

    def is_plain(self, reading: Reading) -> bool:
        """The same for all axes."""
        return all(self.reads_plainly(reading, index) for index in range(len(reading.axes)))

    @cached_property
    def has_windows(self) -> bool:
        """Whether some reader takes an axis of a result through windows, or shifted."""
        return not all(self.is_plain(reading) for reading in self.readings)

    def offsets_of_windows(self, layer: str) -> frozenset[str]:
        """Dimensions that move inside the windows through which a layer reads intermediates."""
        operator = self.operator(layer)
        dims: set[str] = set()
        for reading in self.readings:
            if reading.reader == layer:
                for axis in operator.tensor(reading.operand).axes:
                    if axis.is_compound:
                        dims |= {term.dim for term in axis.terms} - operator.output.dims
        return frozenset(dims)


def _is_plain(operator: Operator, axis: Axis) -> bool:
    """Whether an axis is one loop's, element by element; loops of one iteration do not count."""
    moving = [term for term in axis.terms if operator.bounds[term.dim] > 1]
    if not moving:
        return bool(axis.terms) and axis.size == 1
    return len(moving) == 1 and moving[0].stride == 1 and operator.bounds[moving[0].dim] == axis.size


def moving_term(operator: Operator, axis: Axis) -> str:
    """The loop that moves along an axis, one with several iterations where there is one."""
    return next((term.dim for term in axis.terms if operator.bounds[term.dim] > 1), axis.terms[0].dim)


def mismatch(reader: Operator, producer: Operator, reading: Reading) -> str | None:
    """Why an operand cannot be the result of another layer, element by element; ``None`` where it can."""
    names = [tensor.name for tensor in reader.inputs]
    if reading.operand not in names:
        return unknown_name(reading.operand, names)
    operand, result = reader.tensor(reading.operand), producer.output
    reason = _uneven_axes(result, "the result") or _repeated(operand, "the operand")
    if reason is not None:
        return reason
    if sorted(reading.axes) != list(range(len(result.axes))) or len(reading.axes) != len(operand.axes):
        return (
            f"{len(operand.axes)} axes of {reading.operand} read axes {list(reading.axes)} of a result with "
            f"{len(result.axes)}, expected each of them once"
        )
    if len(reading.offsets) != len(operand.axes) or min(reading.offsets, default=0) < 0:
        number = len(operand.axes)
        return f"offsets {list(reading.offsets)}, expected one of at least 0 for each of {number} axes"
    return sizes_apart(reading, reader, result, whole=True)


def _uneven_axes(result: Tensor, what: str) -> str | None:
    for place, axis in enumerate(result.axes):
        if not axis.is_plain:
            return f"axis {place} of {what} moves with several loops or in strides and cannot be passed on"
    return _repeated(result, what)


def _repeated(tensor: Tensor, what: str) -> str | None:
    dims = [term.dim for axis in tensor.axes for term in axis.terms]
    again = next((dim for dim in dims if dims.count(dim) > 1), None)
    return (
        None if again is None else f"{again} moves along two axes of {what}, so that it cannot be passed on"
    )


def group_of(
    network: Network, names: Iterable[str] | None = None, *, online_softmax: bool = False
) -> FusedGroup:
    """Layers of a network as a group.

    Parameters
    ----------
    network : its links say who reads whom, as far as they know which axis becomes which
    names : the layers; by default all
    online_softmax : whether a softmax may be taken in parts

    Raises
    ------
    InputError : where an operand does not match the result that it reads
    """
    chosen = {layer.name for layer in network.layers} if names is None else set(names)
    layers = tuple((layer.name, layer.operator) for layer in network.layers if layer.name in chosen)
    readings = tuple(
        Reading(link.consumer, link.operand, link.producer, link.axes, link.offsets, link.rows, link.softmax)
        for link in network.links
        if link.producer in chosen and link.consumer in chosen and link.producer and link.axes is not None
    )
    inside = {(reading.producer, reading.reader, reading.operand) for reading in readings}
    leaving = set(network.outputs) & chosen
    for link in network.links:
        if link.producer in chosen and (link.producer, link.consumer, link.operand) not in inside:
            leaving.add(link.producer)
    rows = frozenset((name, row) for name, _ in layers for row in network.layer(name).rows)
    softmaxes = frozenset(name for name, _ in layers if network.layer(name).is_softmax)
    return FusedGroup(layers, readings, frozenset(leaving), rows, softmaxes, online_softmax)
