"""Operators: perfectly nested loops over named dimensions with affine tensor projections.

The representation is dMazeRunner's (section 4.1): a loop nest is its dimensions and bounds, and every
tensor is indexed by sums of loop variables with constant strides.  A convolution, a matrix product, a
pooling or any other perfect nest is the same data structure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class Role(StrEnum):
    """What a tensor is to a machine: machines name the data that they keep by role."""

    INPUT = "inputs"
    WEIGHT = "weights"
    OUTPUT = "outputs"


@dataclass(frozen=True, slots=True, repr=False)
class Dimension:
    """One loop of the nest.

    Parameters
    ----------
    name : the loop's name in this operator, such as ``K``
    bound : number of iterations, at least 1
    like : the convolution dimension (``N G K C P Q R S``) that this loop corresponds to, so that a
        machine's dataflow restriction written for convolutions applies to every operator
    upto : the largest of several bounds that this loop stands for, ``bound`` being the least: it may have the
        tiles of them all, so that none of them costs less (`formulation/mapping/growth.py`)
    """

    name: str
    bound: int
    like: str
    upto: int | None = None

    def __repr__(self) -> str:
        """Without ``upto`` where there is none: hashes of older documents are made of it."""
        own = f"name={self.name!r}, bound={self.bound!r}, like={self.like!r}"
        return f"Dimension({own})" if self.upto is None else f"Dimension({own}, upto={self.upto})"


@dataclass(frozen=True, slots=True)
class Term:
    """``stride * dim`` inside an index expression."""

    dim: str
    stride: int = 1


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a tensor: an index that is a sum of strided loop variables.

    Parameters
    ----------
    terms : the loop variables of the index, each dimension at most once
    size : allocated elements along the axis; at least the extent of the whole nest, and more where
        padding or a stride leaves elements unused (dMazeRunner tests DMA contiguity against it)
    """

    terms: tuple[Term, ...]
    size: int

    def extent(self, tile: MappingABC[str, int]) -> int:
        """Elements that a tile spans along this axis: ``1 + sum(stride * (tile - 1))``."""
        return 1 + sum(term.stride * (tile[term.dim] - 1) for term in self.terms)

    @property
    def is_compound(self) -> bool:
        """Whether several loops move along this axis, so that neighbouring tiles can overlap."""
        return len(self.terms) > 1

    @property
    def is_plain(self) -> bool:
        """Whether one loop at most moves along this axis, element by element."""
        return not self.is_compound and all(term.stride == 1 for term in self.terms)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the nest with one affine projection per axis, outermost axis first.

    Parameters
    ----------
    bits : of one element, where the model says so; ``None`` for the machine's width of its role
    sum_bits : of a result, the same inside the outermost level, where it is still a sum; ``None`` for
        ``bits``
    """

    name: str
    role: Role
    axes: tuple[Axis, ...]
    #: not in the text: hashes of older documents are made of it
    bits: int | None = field(default=None, repr=False)
    sum_bits: int | None = field(default=None, repr=False)
    #: dimensions that the tensor depends on; it is invariant of (reused along) all others
    dims: frozenset[str] = field(init=False, repr=False, compare=False)
    #: those that move it along several axes at once
    diagonal: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        moved = [dim for axis in self.axes for dim in {term.dim for term in axis.terms}]
        object.__setattr__(self, "dims", frozenset(moved))
        object.__setattr__(self, "diagonal", frozenset(dim for dim in self.dims if moved.count(dim) > 1))

    def footprint(self, tile: MappingABC[str, int]) -> int:
        """Elements of the bounding box that a tile of the nest touches."""
        return math.prod(axis.extent(tile) for axis in self.axes)

    @property
    def is_output(self) -> bool:
        return self.role is Role.OUTPUT

    @property
    def overlaps(self) -> bool:
        """Whether several loops move along some axis, so that neighbouring tiles can overlap."""
        return any(axis.is_compound for axis in self.axes)

    @property
    def is_plain(self) -> bool:
        """Whether all axes are, so that a tile holds the elements between its first and its last ones."""
        return all(axis.is_plain for axis in self.axes)


@dataclass(frozen=True)
class Operator:
    """A perfectly nested loop that multiplies (or combines) its inputs into one output.

    Parameters
    ----------
    kind : ``conv2d``, ``depthwise``, ``transposed_conv2d``, ``gemm``, ``matmul``, ``pool``,
        ``elementwise``, ``weight_update`` or ``nest``
    dimensions : the loops, in the operator's conventional order
    tensors : inputs and weights first, the one output last
    is_mac : whether one iteration is one multiply-accumulate; pooling and element-wise layers are not
        counted in MAC totals
    turns : how often the nest runs, one time after the other, other layers in between, each time on other
        inputs and adding to the same output; only what is stored outside all loops outlives a turn
    continued : whether the output has partial sums already when the nest begins

    Raises
    ------
    ValueError : for a bound below 1, a repeated or unknown dimension, an axis smaller than its extent,
        or a number of outputs other than one
    """

    kind: str
    dimensions: tuple[Dimension, ...]
    tensors: tuple[Tensor, ...]
    is_mac: bool = True
    turns: int = 1
    continued: bool = False

    def __post_init__(self) -> None:
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.kind}: dimension named twice in {names}")
        for dimension in self.dimensions:
            if dimension.bound < 1:
                raise ValueError(f"{self.kind}: {dimension.name}={dimension.bound}, expected at least 1")
            if not dimension.bound <= (dimension.upto or dimension.bound) <= 2 * dimension.bound:
                raise ValueError(
                    f"{self.kind}: {dimension.name} up to {dimension.upto}, expected twice at most"
                )
        if [tensor.is_output for tensor in self.tensors].count(True) != 1 or not self.tensors[-1].is_output:
            raise ValueError(f"{self.kind}: expected exactly one output tensor, listed last")
        for tensor in self.tensors:
            unknown = tensor.dims - set(names)
            if unknown:
                raise ValueError(f"{self.kind}: tensor {tensor.name} uses unknown dimension {min(unknown)}")
            for axis in tensor.axes:
                if axis.extent(self.bounds) > axis.size:
                    raise ValueError(
                        f"{self.kind}: an axis of {tensor.name} has size {axis.size}, "
                        f"its loops span {axis.extent(self.bounds)}"
                    )

    @cached_property
    def bounds(self) -> dict[str, int]:
        """Bound of every dimension by name."""
        return {dimension.name: dimension.bound for dimension in self.dimensions}

    @property
    def states_widths(self) -> bool:
        """Whether a tensor says how wide its elements are."""
        return any(tensor.bits or tensor.sum_bits for tensor in self.tensors)

    @cached_property
    def iterations(self) -> int:
        """Iterations of the whole nest, of one turn."""
        return math.prod(self.bounds.values())

    @property
    def macs(self) -> int:
        """Multiply-accumulates: the iterations of a MAC operator, otherwise 0."""
        return self.turns * self.iterations if self.is_mac else 0

    @property
    def output(self) -> Tensor:
        return self.tensors[-1]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Every tensor that is only read (inputs and weights)."""
        return self.tensors[:-1]

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name; raises ``KeyError`` with the known names."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"no tensor {name!r}, expected one of {[tensor.name for tensor in self.tensors]}")

    @property
    def reduction_dims(self) -> frozenset[str]:
        """Dimensions that the output is invariant of: partial sums accumulate along them."""
        return frozenset(self.bounds) - self.output.dims
