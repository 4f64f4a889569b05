"""Machine code for one kind of arguments, called as a function of Python."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable, Iterator
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np

from tilewright.foundation.kernels.code import Loaded
from tilewright.foundation.kernels.module import ARENA_SLOTS, OTHER_TYPES
from tilewright.foundation.kernels.types import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    UINT,
    Array,
    KernelTypeError,
    Scalar,
    Tuple,
    Type,
    has_arrays,
)
from tilewright.foundation.kernels.values import MEMORY, SHAPE, ZERO_DIVISION

_FAILURES: dict[int, tuple[type[Exception], str]] = {
    MEMORY: (MemoryError, "no memory for an array"),
    ZERO_DIVISION: (ZeroDivisionError, "division by zero"),
    SHAPE: (ValueError, "arrays of these lengths do not match, or are empty"),
}
_FORMATS = {"i64": "q", "double": "d", "i1": "?7x", "ptr": "Q"}
_SCALARS = {scalar.name: scalar for scalar in (BOOL, INT, UINT, FLOAT)}


class Version:
    """A function as machine code for one kind of arguments.

    Parameters
    ----------
    types : of the arguments
    result : type of what it returns
    code : the object code
    """

    def __init__(self, types: tuple[Type, ...], result: Type, code: bytes) -> None:
        self.types, self.result, self.code = types, result, code
        self._loaded = Loaded(code)
        # The parts of the result, and behind them the arena that its arrays lie in.
        self._result_buffer = ctypes.c_int64 * (len(result.parts) + ARENA_SLOTS)
        self._parts = struct.Struct("=" + "".join(_FORMATS[part] for part in result.parts))
        self._made, self._releases = _maker(result), has_arrays([result])

    def __reduce__(self) -> tuple[Any, ...]:
        return Version, (self.types, self.result, self.code)

    def __call__(self, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Whether it takes arguments of this kind, and what it returns.

        Raises
        ------
        MemoryError, ZeroDivisionError, ValueError : where the function fails
        """
        loaded, result_buffer = self._loaded, self._result_buffer()
        address = ctypes.addressof(result_buffer)
        status = loaded.entry(arguments, address, loaded.types)
        if status:
            if status == OTHER_TYPES:
                return False, None
            kind, text = _FAILURES[status]
            raise kind(text)
        parts = iter(self._parts.unpack_from(result_buffer))
        if not self._releases:
            return True, self._made(parts)
        try:
            return True, self._made(parts)
        finally:
            loaded.release(address)


def _maker(kind: Type) -> Callable[[Iterator[Any]], Any]:
    """How a result is made of its parts."""
    if kind == NOTHING:
        return lambda parts: None
    if isinstance(kind, Scalar):
        return next
    if isinstance(kind, Array):
        return _array_maker(kind)
    if isinstance(kind, Tuple):
        makers = [_maker(item) for item in kind.items]
        if kind.kind is None:
            return lambda parts: tuple(make(parts) for make in makers)
        named = kind.kind
        return lambda parts: named(*[make(parts) for make in makers])
    raise KernelTypeError(f"{kind} is returned")


def _array_maker(kind: Array) -> Callable[[Iterator[Any]], Any]:
    dtype = np.dtype(kind.dtype)

    def made(parts: Iterator[Any]) -> Any:
        address = next(parts)
        # Copied into memory of numpy's own before the arena is given back.
        array = np.empty([next(parts) for _ in range(kind.dimensions)], dtype)
        if array.size:
            ctypes.memmove(array.__array_interface__["data"][0], address, array.nbytes)
        return array

    return made


def described(kind: Type) -> str:
    """A type of a result as text."""
    return json.dumps(_plain(kind))


def _plain(kind: Type) -> Any:
    if isinstance(kind, Scalar):
        return kind.name
    if isinstance(kind, Array):
        return {"dtype": kind.dtype, "dimensions": kind.dimensions}
    if isinstance(kind, Tuple):
        name = None if kind.kind is None else [kind.kind.__module__, kind.kind.__qualname__]
        return {"kind": name, "items": [_plain(item) for item in kind.items]}
    return None


def result_type(text: str) -> Type:
    """A type of a result from its text."""
    return _typed(json.loads(text))


def _typed(plain: Any) -> Type:
    if plain is None:
        return NOTHING
    if isinstance(plain, str):
        return _SCALARS[plain]
    if "dtype" in plain:
        return Array(plain["dtype"], plain["dimensions"], True)
    kind: Any = None
    if plain["kind"]:
        module, name = plain["kind"]
        kind = reduce(getattr, name.split("."), import_module(module))
    return Tuple(tuple(_typed(item) for item in plain["items"]), kind)
