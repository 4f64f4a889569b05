"""Operators as plain data, so that a result file stands on its own, and in one line for people."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Axis, Dimension, Operator, Role, Tensor, Term


class Record(BaseModel):
    """Base of all records of a file: immutable, no unknown fields, no conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class TermRecord(Record):
    """``stride * dim`` inside an index."""

    dim: str
    stride: int = Field(ge=1)


class AxisRecord(Record):
    """One axis of a tensor."""

    terms: list[TermRecord] = Field(min_length=1)
    size: int = Field(ge=1)


class TensorRecord(Record):
    """A tensor with its projections, outermost axis first."""

    name: str
    role: Literal["inputs", "weights", "outputs"]
    axes: list[AxisRecord]


class StatedTensorRecord(TensorRecord):
    """A tensor of a model that states widths: bits of an element, and of a sum inside the machine."""

    bits: int | None = Field(ge=1, le=64)
    sum_bits: int | None = Field(ge=1, le=64)


class DimensionRecord(Record):
    """A loop, its bound, and the convolution dimension that it corresponds to."""

    name: str
    bound: int = Field(ge=1)
    like: str


class SpanningDimensionRecord(DimensionRecord):
    """A loop that stands for all bounds up to one: it may have the tiles of them all."""

    upto: int = Field(ge=1)


class OperatorRecord(Record):
    """An operator in full."""

    kind: str
    is_mac: bool
    dimensions: list[SpanningDimensionRecord | DimensionRecord]
    tensors: list[StatedTensorRecord | TensorRecord]

    @classmethod
    def of(cls, operator: Operator) -> OperatorRecord:
        """The record of an operator."""
        return cls(
            kind=operator.kind,
            is_mac=operator.is_mac,
            dimensions=[_dimension(dimension) for dimension in operator.dimensions],
            tensors=[_tensor(tensor) for tensor in operator.tensors],
        )

    def build(self, where: str) -> Operator:
        """The operator; raises ``InputError`` where the record contradicts itself."""
        tensors = tuple(
            Tensor(
                tensor.name,
                Role(tensor.role),
                tuple(
                    Axis(tuple(Term(t.dim, t.stride) for t in axis.terms), axis.size) for axis in tensor.axes
                ),
                *((tensor.bits, tensor.sum_bits) if isinstance(tensor, StatedTensorRecord) else ()),
            )
            for tensor in self.tensors
        )
        dimensions = tuple(
            Dimension(d.name, d.bound, d.like, *((d.upto,) if isinstance(d, SpanningDimensionRecord) else ()))
            for d in self.dimensions
        )
        try:
            return Operator(self.kind, dimensions, tensors, self.is_mac)
        except ValueError as error:
            raise InputError(where, "operator", str(error)) from None


def _dimension(loop: Dimension) -> DimensionRecord:
    if loop.upto is None:
        return DimensionRecord(name=loop.name, bound=loop.bound, like=loop.like)
    return SpanningDimensionRecord(name=loop.name, bound=loop.bound, like=loop.like, upto=loop.upto)


def _tensor(tensor: Tensor) -> TensorRecord:
    axes = [
        AxisRecord(terms=[TermRecord(dim=t.dim, stride=t.stride) for t in axis.terms], size=axis.size)
        for axis in tensor.axes
    ]
    if tensor.bits or tensor.sum_bits:
        return StatedTensorRecord(
            name=tensor.name, role=tensor.role.value, axes=axes, bits=tensor.bits, sum_bits=tensor.sum_bits
        )
    return TensorRecord(name=tensor.name, role=tensor.role.value, axes=axes)


def shape_text(operator: Operator) -> str:
    """Bounds above 1 in one line, such as ``K64 C3 P112 Q112 R7 S7``."""
    return " ".join(f"{name}{bound}" for name, bound in operator.bounds.items() if bound > 1) or "1"


def index_text(tensor: Tensor) -> str:
    """A tensor's projection as code, such as ``I[n, c, 2*p + r, 2*q + s]``."""

    def axis_text(axis: Axis) -> str:
        terms = [f"{t.stride}*{t.dim.lower()}" if t.stride != 1 else t.dim.lower() for t in axis.terms]
        return " + ".join(terms) or "0"

    return f"{tensor.name}[{', '.join(axis_text(axis) for axis in tensor.axes)}]"


def statement_text(operator: Operator) -> str:
    """The innermost statement, such as ``O[n, k, p, q] += I[...] * W[...]``."""
    inputs = [index_text(tensor) for tensor in operator.inputs]
    if operator.is_mac:
        return f"{index_text(operator.output)} += {' * '.join(inputs)}"
    sign = "=" if not operator.reduction_dims else "reduce="
    return f"{index_text(operator.output)} {sign} {operator.kind}({', '.join(inputs)})"
