"""Values while a kernel is translated, and the text of LLVM that computes them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.foundation.kernels.types import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    SLOT,
    UINT,
    Array,
    KernelTypeError,
    Scalar,
    Static,
    Tuple,
    Type,
)

MEMORY, ZERO_DIVISION, SHAPE = 1, 2, 3
"""Why a kernel ended early: no memory was left, a divisor was 0, lengths that have to agree did not."""


@dataclass(frozen=True)
class Value:
    """What an expression has computed.

    Parameters
    ----------
    type : of it
    parts : names or constants of its parts in LLVM
    constant : where it is known before the kernel runs, the Python object
    address : where it lies in memory, if it does
    natural : whether it is a whole number from 0 on
    """

    type: Type
    parts: tuple[str, ...] = ()
    constant: Any = None
    address: str = ""
    natural: bool = False

    @property
    def part(self) -> str:
        return self.parts[0]

    def items(self) -> list[Value]:
        """Those of a tuple."""
        if not isinstance(self.type, Tuple):
            raise KernelTypeError(f"expected a tuple, not {self.type}")
        values, at = [], 0
        for kind in self.type.items:
            values.append(Value(kind, self.parts[at : at + len(kind.parts)]))
            at += len(kind.parts)
        return values


NONE = Value(NOTHING)


def static(value: Any) -> Value:
    return Value(Static(value), constant=value)


def literal(value: Any) -> Value:
    """A number that is known, or anything else that the compiler computes with itself."""
    if isinstance(value, bool):
        return Value(BOOL, ("true" if value else "false",), value)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise KernelTypeError(f"{value} does not fit 64 bits")
        return Value(INT if value < 1 << 63 else UINT, (str(value),), value)
    if isinstance(value, float):
        # LLVM reads decimals only where they are exact; the bits always are.
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return Value(FLOAT, (f"0x{bits:016X}",), value)
    if isinstance(value, tuple):
        items = [literal(item) for item in value]
        parts = tuple(part for item in items for part in item.parts)
        return Value(Tuple(tuple(item.type for item in items)), parts, value)
    if value is None:
        return NONE
    if isinstance(value, np.integer | np.floating | np.bool_):
        return literal(value.item())
    return static(value)


class Text:
    """The statements of one function; while types are looked for, nothing is written.

    Parameters
    ----------
    writes : whether anything is written
    """

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.lines: list[str] = []
        self.stack_slots: list[str] = []  # memory that the function takes when it begins
        self.is_open = True  # whether what is written now can be reached
        self.fails = False
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def write(self, statement: str) -> None:
        if self.writes and self.is_open:
            self.lines.append(statement)

    def compute(self, operation: str) -> str:
        """The name of what an operation computes."""
        # Behind a return or a jump nothing can be reached, and LLVM would refuse it.
        if not (self.writes and self.is_open):
            return "poison"
        name = self.name()
        self.lines.append(f"{name} = {operation}")
        return name

    def stack_slot(self, kind: str, count: int = 1) -> str:
        """The address of memory that is the function's own."""
        if not self.writes:
            return "poison"
        name = self.name()
        # All at the beginning of the function: in a loop each round would take more of the stack, and LLVM
        # turns only these into registers.
        self.stack_slots.append(f"{name} = alloca {kind}, i64 {count}, align 8")
        return name

    def new_label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def label(self, label: str) -> None:
        # A block ends with a jump; falling through is one to the next label.
        self.go(label)
        self.is_open = True
        if self.writes:
            self.lines.append(f"{label}:")

    def go(self, label: str) -> None:
        self.write(f"br label %{label}")
        self.is_open = False

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.write(f"br i1 {condition}, label %{then}, label %{otherwise}")
        self.is_open = False

    def fail_if(self, condition: str, why: int) -> None:
        """End the whole kernel where a condition holds."""
        self.fails = True
        bad, good = self.new_label(), self.new_label()
        # Weighted as almost never taken, so that the failing path lies out of the way.
        self.write(f"br i1 {condition}, label %{bad}, label %{good}, !prof !0")
        self.is_open = False
        self.label(bad)
        self.write(f"ret i32 {why}")
        self.is_open = False
        self.label(good)

    def load(self, kind: Type, address: str) -> Value:
        """A value that lies in memory."""
        parts = tuple(
            self.compute(f"load {part}, ptr {self.slot(address, at)}") for at, part in enumerate(kind.parts)
        )
        return Value(kind, parts)

    def store(self, value: Value, address: str) -> None:
        for at, (part, kind) in enumerate(zip(value.parts, value.type.parts, strict=True)):
            self.write(f"store {kind} {part}, ptr {self.slot(address, at)}")

    def slot(self, address: str, at: int) -> str:
        return self.compute(f"getelementptr i8, ptr {address}, i64 {at * SLOT}") if at else address

    def repeat(self, count: str, body: Callable[[str], None]) -> None:
        """Do something for 0, 1, …, ``count - 1``; the number is passed."""
        counter = self.stack_slot("i64")
        self.write(f"store i64 0, ptr {counter}")
        test, inside, behind = self.new_label(), self.new_label(), self.new_label()
        self.label(test)
        at = self.compute(f"load i64, ptr {counter}")
        more = self.compute(f"icmp slt i64 {at}, {count}")
        self.branch(more, inside, behind)
        self.label(inside)
        body(at)
        following = self.compute(f"add nsw i64 {at}, 1")
        self.write(f"store i64 {following}, ptr {counter}")
        self.go(test)
        self.label(behind)

    def truth(self, value: Value) -> str:
        """Whether a value is true."""
        if value.type == BOOL:
            return value.part
        if value.type == FLOAT:
            return self.compute(f"fcmp une double {value.part}, 0.0")
        if value.type in (INT, UINT):
            return self.compute(f"icmp ne i64 {value.part}, 0")
        raise KernelTypeError(f"{value.type} is neither true nor false")

    def converted(self, value: Value, kind: Type) -> Value:
        """A value as one of another type, which its name or its place has."""
        if value.type == kind:
            return value
        if isinstance(value.type, Scalar) and isinstance(kind, Scalar):
            return Value(kind, (self._number(value, kind),))
        # A contiguous array is also one with gaps, once its strides are written out.
        if isinstance(value.type, Array) and isinstance(kind, Array) and value.type.contiguous:
            return Value(kind, (*value.parts, *self.strides(value)))
        if (
            isinstance(value.type, Tuple)
            and isinstance(kind, Tuple)
            and len(value.type.items) == len(kind.items)
        ):
            items = [self.converted(item, to) for item, to in zip(value.items(), kind.items, strict=True)]
            return Value(kind, tuple(part for item in items for part in item.parts))
        raise KernelTypeError(f"{value.type} stands where {kind} is expected")

    def _number(self, value: Value, kind: Scalar) -> str:
        before, part = value.type, value.part
        if kind == BOOL:
            return self.truth(value)
        if kind == FLOAT:
            if isinstance(value.constant, int) and not isinstance(value.constant, bool):
                return literal(float(value.constant)).part
            # Truth values and unsigned numbers count from 0 up.
            how = "sitofp" if before == INT else "uitofp"
            return self.compute(f"{how} {before.parts[0]} {part} to double")
        if before == BOOL:
            return self.compute(f"zext i1 {part} to i64")
        if before == FLOAT:
            return self.compute(f"fptosi double {part} to i64")
        return part

    def strides(self, array: Value) -> list[str]:
        """Bytes between neighbours along every dimension."""
        kind = array.type
        assert isinstance(kind, Array)
        count = kind.dimensions
        if not kind.contiguous:
            return list(array.parts[1 + count :])
        strides = [str(kind.size)]
        # The last dimension lies together; each one before it spans all that follow.
        for length in reversed(array.parts[2 : 1 + count]):
            strides.append(self.compute(f"mul nsw i64 {strides[-1]}, {length}"))
        return strides[::-1][-count:] if count else []


def lengths(array: Value) -> list[str]:
    """Entries along every dimension."""
    assert isinstance(array.type, Array)
    return list(array.parts[1 : 1 + array.type.dimensions])


def tuple_of(items: Sequence[Value], kind: type | None = None) -> Value:
    """A tuple of values."""
    constant = (
        tuple(item.constant for item in items) if all(item.constant is not None for item in items) else None
    )
    parts = tuple(part for item in items for part in item.parts)
    return Value(Tuple(tuple(item.type for item in items), kind), parts, constant)


def bound_to(
    names: Sequence[str], given: Sequence[Value], named: dict[str, Value], defaults: dict[str, Any]
) -> list[Value]:
    """An argument per name, in their order.

    Parameters
    ----------
    names : of the parameters
    given, named : arguments by position and by keyword
    defaults : Python objects for parameters without an argument
    """
    bound = dict(zip(names, given, strict=False)) | named
    if len(given) > len(names) or not set(bound) <= set(names):
        raise KernelTypeError(f"arguments for {', '.join(names)} do not match")
    missing = [name for name in names if name not in bound and name not in defaults]
    if missing:
        raise KernelTypeError(f"{', '.join(missing)}: no argument")
    return [bound[name] if name in bound else literal(defaults[name]) for name in names]
