"""Sizes of a model's inputs that the model leaves open: which they are, and how a user sets them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

import onnx

from tilewright.foundation.errors import InputError, unknown_name

FILLED = 64
"""Size that open axes take where only that is asked which does not depend on it."""


@dataclass(frozen=True, slots=True)
class OpenAxis:
    """An axis of an input without a size.

    Parameters
    ----------
    input, position : where it is
    symbol : its name in the model, possibly empty
    """

    input: str
    position: int
    symbol: str

    @property
    def key(self) -> str:
        """How a user names it: by its symbol where that is a word, else by input and axis."""
        return self.symbol or self.place

    @property
    def place(self) -> str:
        """Input and axis."""
        return f"{self.input}.{self.position}"


def axes_of(
    graph: onnx.GraphProto, constants: frozenset[str]
) -> Iterator[tuple[OpenAxis, onnx.TensorShapeProto.Dimension]]:
    """All axes of the inputs, open or not, and where their sizes stand."""
    for value in graph.input:
        if value.name not in constants:
            for i, axis in enumerate(value.type.tensor_type.shape.dim):
                yield OpenAxis(value.name, i, axis.dim_param), axis


def is_open(axis: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether an axis has no size; some exporters write -1 or 0 for that."""
    return not axis.HasField("dim_value") or axis.dim_value < 1


def set_sizes(
    graph: onnx.GraphProto, where: str, constants: frozenset[str], dims: MappingABC[str, int]
) -> None:
    """Write sizes into open axes of the inputs, an axis with a name into all of that name.

    Parameters
    ----------
    graph : changed in place
    where : the file, for messages
    constants : names of stored tensors
    dims : size by symbol, or by input and axis (``x.2``)

    Raises
    ------
    InputError : for a key that no open axis has, and for two sizes of one symbol
    """
    for _, axis in axes_of(graph, constants):
        if is_open(axis) and not axis.dim_param.strip("?"):
            axis.Clear()
    axes = [(place, axis) for place, axis in axes_of(graph, constants) if is_open(axis)]
    fixed = {place.place: axis.dim_value for place, axis in axes_of(graph, constants) if not is_open(axis)}
    chosen: dict[str, int] = {}
    for key, size in dims.items():
        matching = [place for place, _ in axes if key in (place.symbol, place.place)]
        if not matching and key in fixed:
            raise InputError("--dim", key, f"{where}: has the size {fixed[key]}, expected an open axis")
        if not matching:
            known = sorted({name for place, _ in axes for name in (place.key, place.place)})
            reported = unknown_name(key, known) if known else "the inputs have no open sizes"
            raise InputError("--dim", key, f"{where}: {reported}")
        symbols = {place.symbol for place in matching if place.symbol}
        for place, axis in axes:
            if place in matching or place.symbol in symbols:
                at = place.place
                if chosen.setdefault(at, size) != size:
                    raise InputError("--dim", key, f"{where}: {size}, but {at} has {chosen[at]} already")
                axis.dim_value = size


def open_axes(graph: onnx.GraphProto, where: str, constants: frozenset[str]) -> list[OpenAxis]:
    """Axes without a size, but for the batch.

    The batch is the first axis of the first input that has one; where it is open, so is every axis of its
    symbol and every open first axis without one.

    Raises
    ------
    InputError : for inputs without a shape or a batch axis
    """
    for value in graph.input:
        if value.name not in constants and not value.type.tensor_type.HasField("shape"):
            raise InputError(where, f"input {value.name}", "has no shape")
    axes = [*axes_of(graph, constants)]
    batch = next(((place, axis) for place, axis in axes if place.position == 0), None)
    if batch is None:
        raise InputError(where, None, "expected an input with a batch axis")
    first, axis = batch
    return [
        place
        for place, own in axes
        if is_open(own)
        and not (is_open(axis) and place.symbol == first.symbol and (place.position == 0 or first.symbol))
    ]


def fill_axes(graph: onnx.GraphProto, constants: frozenset[str]) -> None:
    """Give every open axis `FILLED`, the batch 1."""
    for place, axis in axes_of(graph, constants):
        if is_open(axis):
            axis.dim_value = FILLED if place.position else 1
