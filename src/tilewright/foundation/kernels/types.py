"""Types of what kernels compute with, and how values of these types lie in registers and in memory.

A value is a list of *parts*, each a number or an address: a scalar has one, an array has its address, its
lengths and, where it is not contiguous, its strides in bytes, a tuple has those of its items.  In memory
every part takes one slot of eight bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

SLOT = 8
"""Bytes of a part in memory."""


class KernelTypeError(TypeError):
    """A kernel says something that the compiler has no machine code for."""


@dataclass(frozen=True)
class Type:
    """What is known of a value before it is computed."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The types that LLVM has for it."""
        return ()


@dataclass(frozen=True)
class Nothing(Type):
    """``None``."""


@dataclass(frozen=True)
class Static(Type):
    """What the compiler computes with itself: a function, a module, a class, a kind of number.

    Parameters
    ----------
    value : the Python object
    """

    value: Any


@dataclass(frozen=True)
class Scalar(Type):
    """A number.

    Parameters
    ----------
    name : of the type
    llvm : its type in LLVM
    """

    name: str
    llvm: str

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.llvm,)


BOOL, INT, UINT, FLOAT = (
    Scalar("bool", "i1"),
    Scalar("int", "i64"),
    Scalar("uint", "i64"),
    Scalar("float", "double"),
)
NOTHING = Nothing()


@dataclass(frozen=True)
class Array(Type):
    """A numpy array.

    Parameters
    ----------
    dtype : name of the kind of its entries
    dimensions : how many
    contiguous : whether its entries lie without gaps, the last dimension together
    """

    dtype: str
    dimensions: int
    contiguous: bool

    @property
    def parts(self) -> tuple[str, ...]:
        return ("ptr", *("i64",) * (self.dimensions * (1 if self.contiguous else 2)))

    @property
    def form(self) -> tuple[str, int]:
        """All but how its entries lie."""
        return self.dtype, self.dimensions

    @property
    def entry(self) -> Scalar:
        return ENTRIES[self.dtype][1]

    @property
    def memory(self) -> str:
        """The type of an entry in memory."""
        return ENTRIES[self.dtype][0]

    @property
    def size(self) -> int:
        """Bytes of an entry."""
        return np.dtype(self.dtype).itemsize


ENTRIES = {
    "bool": ("i8", BOOL),
    "int8": ("i8", INT),
    "int16": ("i16", INT),
    "int32": ("i32", INT),
    "int64": ("i64", INT),
    "uint8": ("i8", INT),
    "uint16": ("i16", INT),
    "uint32": ("i32", INT),
    "uint64": ("i64", UINT),
    "float64": ("double", FLOAT),
}
"""Per kind of entries, the type in memory, and the one that is computed with."""


@dataclass(frozen=True)
class Tuple(Type):
    """A tuple.

    Parameters
    ----------
    items : types of what is in it
    kind : its class where it has names, else ``None``
    """

    items: tuple[Type, ...]
    kind: type | None = None

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        return tuple(part for item in self.items for part in item.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        return self._parts

    @property
    def fields(self) -> tuple[str, ...]:
        return getattr(self.kind, "_fields", ())


def type_of(value: object) -> Type:
    """The type of an argument.

    Raises
    ------
    KernelTypeError : where kernels take none such
    """
    if isinstance(value, np.ndarray):
        if value.dtype.name not in ENTRIES or not value.dtype.isnative or not value.flags.aligned:
            raise KernelTypeError(f"arrays of {value.dtype} have no machine code")
        return Array(value.dtype.name, value.ndim, value.flags.c_contiguous)
    if isinstance(value, tuple):
        return Tuple(tuple(map(type_of, value)), type(value) if hasattr(value, "_fields") else None)
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, np.uint64):
        return UINT
    if isinstance(value, int | np.integer):
        return INT
    if isinstance(value, float | np.floating):
        return FLOAT
    if value is None:
        return NOTHING
    raise KernelTypeError(f"values of type {type(value).__name__} have no machine code")


def common(first: Type, second: Type) -> Type:
    """The type of a name that is given values of both types.

    Raises
    ------
    KernelTypeError : where there is none
    """
    if first == second:
        return first
    if isinstance(first, Scalar) and isinstance(second, Scalar):
        numbers = {first, second}
        if UINT in numbers and INT in numbers:
            raise KernelTypeError("signed and unsigned numbers are mixed")
        return next(kind for kind in (FLOAT, UINT, INT) if kind in numbers)
    if isinstance(first, Array) and isinstance(second, Array) and first.form == second.form:
        return Array(first.dtype, first.dimensions, False)
    if isinstance(first, Tuple) and isinstance(second, Tuple) and len(first.items) == len(second.items):
        items = tuple(common(a, b) for a, b in zip(first.items, second.items, strict=True))
        return Tuple(items, first.kind if first.kind is second.kind else None)
    raise KernelTypeError(f"a name is given values of two types: {first} and {second}")


def has_arrays(types: Sequence[Type]) -> bool:
    """Whether there is an array among values of these types."""
    return any("ptr" in kind.parts for kind in types)
