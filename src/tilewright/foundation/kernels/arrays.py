"""Arrays in kernels: entries, views, new arrays, and what is done with all entries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.foundation.kernels.types import BOOL, FLOAT, INT, Array, KernelTypeError, Type
from tilewright.foundation.kernels.values import MEMORY, SHAPE, Text, Value, lengths, literal


@dataclass(frozen=True)
class Part:
    """A slice ``start : stop``; either may be missing."""

    start: Value | None
    stop: Value | None


Index = Value | Part


def _array(value: Value) -> Array:
    if not isinstance(value.type, Array):
        raise KernelTypeError(f"expected an array, not {value.type}")
    return value.type


def _place(text: Text, index: Value, length: str) -> str:
    """An index as a number from the front."""
    if index.type == BOOL or index.type == FLOAT:
        raise KernelTypeError(f"{index.type} is no index")
    if isinstance(index.constant, int):
        return index.part if index.constant >= 0 else text.compute(f"add i64 {length}, {index.constant}")
    # A loop counter from 0 on: without the test for the back the loop can be vectorised.
    if index.natural:
        return index.part
    behind = text.compute(f"icmp slt i64 {index.part}, 0")
    front = text.compute(f"add i64 {index.part}, {length}")
    return text.compute(f"select i1 {behind}, i64 {front}, i64 {index.part}")


def _border(text: Text, index: Value, length: str) -> str:
    """A border of a slice, between 0 and the length."""
    if index.constant == 0:
        return "0"
    # As Python's slices: borders beyond the ends are moved to them.
    place = _place(text, index, length)
    low = text.compute(f"call i64 @llvm.smax.i64(i64 {place}, i64 0)")
    return text.compute(f"call i64 @llvm.smin.i64(i64 {low}, i64 {length})")


def view(text: Text, array: Value, indices: Sequence[Index]) -> Value:
    """A part of an array; its entry where every index is a number, as an array of no dimension."""
    kind = _array(array)
    if len(indices) > kind.dimensions:
        raise KernelTypeError(f"{len(indices)} indices for {kind}")
    sizes, strides = lengths(array), text.strides(array)
    # Dimensions without an index are taken whole.
    every = [*indices, *[Part(None, None)] * (kind.dimensions - len(indices))]
    address = array.part
    left: list[str] = []
    gaps: list[str] = []
    contiguous = kind.contiguous
    for at, index in enumerate(every):
        if isinstance(index, Value):
            place = _place(text, index, sizes[at])
            # Entries stay together only where whole dimensions follow what was cut.
            contiguous = contiguous and not left
        else:
            start = "0" if index.start is None else _border(text, index.start, sizes[at])
            stop = sizes[at] if index.stop is None else _border(text, index.stop, sizes[at])
            place, length = start, sizes[at]
            if index.start is not None or index.stop is not None:
                contiguous = contiguous and not left
                span = text.compute(f"sub i64 {stop}, {start}")
                length = text.compute(f"call i64 @llvm.smax.i64(i64 {span}, i64 0)")
            left.append(length)
            gaps.append(strides[at])
        if place != "0":
            # An index in units of entries is what LLVM recognises as walking through an array.
            if strides[at] == str(kind.size):
                address = text.compute(f"getelementptr inbounds {kind.memory}, ptr {address}, i64 {place}")
            else:
                offset = text.compute(f"mul nsw i64 {place}, {strides[at]}")
                address = text.compute(f"getelementptr inbounds i8, ptr {address}, i64 {offset}")
    viewed = Array(kind.dtype, len(left), contiguous)
    return Value(viewed, (address, *left, *(() if contiguous else gaps)))


def read(text: Text, array: Value) -> Value:
    """The entry of an array of no dimension."""
    kind = _array(array)
    part = text.compute(f"load {kind.memory}, ptr {array.part}")
    if kind.dtype == "bool":
        return Value(BOOL, (text.compute(f"trunc i8 {part} to i1"),))
    if kind.memory not in ("i64", "double"):
        # All whole numbers are computed with in 64 bits.
        grown = "zext" if kind.dtype.startswith("u") else "sext"
        part = text.compute(f"{grown} {kind.memory} {part} to i64")
    return Value(kind.entry, (part,))


def write(text: Text, array: Value, value: Value) -> None:
    """Set the entry of an array of no dimension."""
    kind = _array(array)
    part = text.converted(value, kind.entry).part
    if kind.dtype == "bool":
        part = text.compute(f"zext i1 {part} to i8")
    elif kind.memory not in ("i64", "double"):
        part = text.compute(f"trunc i64 {part} to {kind.memory}")
    text.write(f"store {kind.memory} {part}, ptr {array.part}")


def number(part: str) -> Value:
    """A length, or a place."""
    return Value(INT, (part,), natural=True)


def entries(text: Text, array: Value) -> str:
    """How many there are."""
    count = "1"
    for length in lengths(array):
        count = length if count == "1" else text.compute(f"mul nsw i64 {count}, {length}")
    return count


def each(text: Text, shape: Sequence[str], body: Callable[[list[Value]], None]) -> None:
    """Do something for every index below a shape."""

    def within(indices: list[Value]) -> None:
        if len(indices) == len(shape):
            body(indices)
            return
        text.repeat(shape[len(indices)], lambda at: within([*indices, number(at)]))

    within([])


def _flat(array: Value, count: str) -> Value:
    kind = _array(array)
    return Value(Array(kind.dtype, 1, True), (array.part, count))


def fill(text: Text, array: Value, value: Value) -> None:
    """Set all entries to one number."""
    kind = _array(array)
    part = text.converted(value, kind.entry)
    # One loop over all entries, whatever the shape.
    target = _flat(array, entries(text, array)) if kind.contiguous else array
    each(text, lengths(target), lambda at: write(text, view(text, target, at), part))


def assign(text: Text, target: Value, source: Value) -> None:
    """Copy the entries of an array of the same shape."""
    if _array(target).dimensions != _array(source).dimensions:
        raise KernelTypeError(f"{source.type} is copied to {target.type}")
    for length, other in zip(lengths(target), lengths(source), strict=True):
        # Names in LLVM: the same name is surely the same length, others are compared when the kernel runs.
        if length != other:
            text.fail_if(text.compute(f"icmp ne i64 {length}, {other}"), SHAPE)
    if _array(target).contiguous and _array(source).contiguous:
        count = entries(text, target)
        target, source = _flat(target, count), _flat(source, count)

    def copy(at: list[Value]) -> None:
        write(text, view(text, target, at), read(text, view(text, source, at)))

    each(text, lengths(target), copy)


def new(text: Text, dtype: str, shape: Sequence[Value]) -> Value:
    """Room for an array, which lasts until the function that asked for it returns."""
    kind = Array(dtype, len(shape), True)
    sizes = [text.converted(length, INT).part for length in shape]
    for length in shape:
        if not isinstance(length.constant, int):
            # A negative length would take a wrong size from the arena.
            text.fail_if(text.compute(f"icmp slt i64 {length.part}, 0"), SHAPE)
    count = entries(text, Value(kind, ("", *sizes)))
    size = text.compute(f"mul i64 {count}, {kind.size}") if kind.size > 1 else count
    address = text.compute(f"call ptr @arena_take(ptr %arena, i64 {size})")
    text.fail_if(text.compute(f"icmp eq ptr {address}, null"), MEMORY)
    return Value(kind, (address, *sizes))


def filled(text: Text, dtype: str, shape: Sequence[Value], value: Value) -> Value:
    """A new array with the same value everywhere.

    Parameters
    ----------
    text : the function that is being written
    dtype : of the entries, such as ``float64``
    shape : one length per axis
    value : of every entry
    """
    array = new(text, dtype, shape)
    fill(text, array, value)
    return array


def shaped_like(array: Value) -> list[Value]:
    return [number(length) for length in lengths(array)]


def copied(text: Text, array: Value) -> Value:
    copy = new(text, _array(array).dtype, shaped_like(array))
    assign(text, copy, array)
    return copy


def mapped(text: Text, array: Value, function: Callable[[Value], Value], dtype: str) -> Value:
    """A new array of what a function makes of every entry.

    Parameters
    ----------
    text : the function that is being written
    array : of any shape, which the result shares
    function : writes what becomes of one entry
    dtype : of the results
    """
    results = new(text, dtype, shaped_like(array))
    each(
        text,
        lengths(array),
        lambda at: write(text, view(text, results, at), function(read(text, view(text, array, at)))),
    )
    return results


def folded(text: Text, array: Value, start: Value, function: Callable[[Value, Value], Value]) -> Value:
    """What a function of two makes of all entries, one after the other.

    Parameters
    ----------
    text : the function that is being written
    array : of any shape, read in the order of its indices
    start : the result where there are no entries
    function : writes the next result, of the last one and an entry
    """
    stack_slot = text.stack_slot(start.type.parts[0])
    text.store(start, stack_slot)

    def step(at: list[Value]) -> None:
        text.store(function(text.load(start.type, stack_slot), read(text, view(text, array, at))), stack_slot)

    each(text, lengths(array), step)
    return text.load(start.type, stack_slot)


def first_entry(text: Text, array: Value) -> Value:
    """The first entry of an array that has one; without any, the kernel fails."""
    text.fail_if(text.compute(f"icmp eq i64 {entries(text, array)}, 0"), SHAPE)
    return read(text, view(text, array, [literal(0)] * _array(array).dimensions))


def total(text: Text, array: Value, add: Callable[[Value, Value], Value]) -> Value:
    """The sum of all entries."""
    start: Type = FLOAT if _array(array).entry == FLOAT else INT
    return folded(text, array, literal(0.0 if start == FLOAT else 0), add)


def sorted_places(text: Text, array: Value) -> Value:
    """Places of the entries of a row in ascending order; of equal ones the first comes first."""
    kind = _array(array)
    if kind.dimensions != 1 or kind.dtype == "uint64":
        raise KernelTypeError(f"{kind} is not sorted")
    count = lengths(array)[0]
    if not kind.contiguous or kind.dtype not in ("int32", "int64", "float64"):
        dtype = "float64" if kind.entry == FLOAT else "int64"
        plain = new(text, dtype, [number(count)])
        assign(text, plain, array)
        array, kind = plain, _array(plain)
    places, scratch = new(text, "int64", [number(count)]), new(text, "int64", [number(count)])
    text.write(
        f"call void @sort_{kind.dtype}(ptr {array.part}, i64 {count}, ptr {places.part}, ptr {scratch.part})"
    )
    return places
