"""A kernel and all that it calls, as one module in the text of LLVM, with a door for Python.

The door is called with the tuple of arguments.  It looks at their types, takes numbers and addresses out of
them, and runs the kernel without the interpreter's lock.  It knows how CPython and numpy lay out arrays, as
their stable interfaces have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.foundation.kernels.runtime import ARENA, DECLARED, SORTS
from tilewright.foundation.kernels.source import Source
from tilewright.foundation.kernels.translation import Function
from tilewright.foundation.kernels.types import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    SLOT,
    Array,
    KernelTypeError,
    Tuple,
    Type,
    has_arrays,
)
from tilewright.foundation.kernels.values import Text

ENTRY, RELEASE = "tilewright_entry", "tilewright_release"
"""What Python calls: the kernel, and what takes back the memory of the arrays that it returned."""

OTHER_TYPES = 10
"""What the kernel answers to arguments of other types than it was compiled for."""

ARENA_SLOTS = 3
"""Behind the parts of the result: the arena that the returned arrays lie in."""

IMPORTS = (
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyObject_IsTrue",
    "PyTuple_GetItem",
    "PyTuple_Size",
)
"""What the door calls of the interpreter."""

_DECLARED = """
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
"""
_TYPE, _DATA, _DIMENSIONS, _LENGTHS, _STRIDES, _KIND, _FLAGS = 8, 16, 24, 32, 40, 56, 64
_ORDER, _NUMBER = 26, 28
_CONTIGUOUS, _ALIGNED = 0x1, 0x100
_SWAPPED = ord(">")


class Module:
    """A kernel for arguments of certain types, and what it calls.

    Parameters
    ----------
    source : of the kernel
    types : of its arguments

    Attributes
    ----------
    result : type of what it returns

    Raises
    ------
    KernelTypeError : where there is no machine code for what it says
    """

    def __init__(self, source: Source, types: Sequence[Type]) -> None:
        self._functions: dict[tuple[Source, tuple[Type, ...]], Function | None] = {}
        self.entry = self.function(source, types)
        self.result = self.entry.returned
        # Results are copied as one block of memory.
        if has_arrays([self.result]):
            _check_contiguous(self.result)

    def function(self, source: Source, types: Sequence[Type]) -> Function:
        """A kernel for arguments of these types; once for all that call it."""
        key = (source, tuple(types))
        if key not in self._functions:
            # A mark for recursion: machine code of a function needs the types of what it calls.
            self._functions[key] = None
            symbol = f"{source.name}.{len(self._functions)}"
            self._functions[key] = Function(self, source, types, symbol)
        function = self._functions[key]
        if function is None:
            raise KernelTypeError(f"{source.name} calls itself")
        return function

    def text(self) -> str:
        """The module in the text of LLVM."""
        entry_point = self._entry_point()
        body = "\n".join(function.written() for function in list(self._functions.values()) if function)
        sorts = [text for name, text in SORTS.items() if f"@sort_{name}(" in body]
        return "\n".join(
            [DECLARED, _DECLARED, ARENA, *sorts, body, entry_point, _release(len(self.result.parts))]
        )

    def _entry_point(self) -> str:
        text = Text(True)
        entry_point = _EntryPoint(text)
        passed = ["ptr %arena", "ptr %out"]
        for at, kind in enumerate(self.entry.types):
            # A borrowed reference: Python's tuple outlives the call.
            item = text.compute(f"call ptr @PyTuple_GetItem(ptr %arguments, i64 {at})")
            parts = entry_point.taken(item, kind)
            if isinstance(kind, Tuple):
                address = text.stack_slot("i64", max(1, len(parts)))
                for place, (part, name) in enumerate(zip(parts, kind.parts, strict=True)):
                    text.write(f"store {name} {part}, ptr {text.slot(address, place)}")
                passed.append(f"ptr {address}")
            else:
                passed += [f"{name} {part}" for name, part in zip(kind.parts, parts, strict=True)]
        # Arrays in the result live in the arena until Python has copied them; `RELEASE` frees it then.
        kept = has_arrays([self.result])
        lines = "\n  ".join([*text.stack_slots, *text.lines])
        give_back = "call void @arena_give_back(ptr %arena, ptr null, i64 0)"
        # Between saving and restoring the thread no object of Python is touched, so that other threads run
        # meanwhile.
        return f"""
define i64 @{ENTRY}(ptr %arguments, ptr %out, ptr %types) {{
  %arena = getelementptr i8, ptr %out, i64 {SLOT * len(self.result.parts)}
  store ptr null, ptr %arena
  %arena.free = getelementptr i8, ptr %arena, i64 {SLOT}
  %arena.end = getelementptr i8, ptr %arena, i64 {2 * SLOT}
  store i64 0, ptr %arena.free
  store i64 0, ptr %arena.end
  {lines}
  %lock = call ptr @PyEval_SaveThread()
  %status = call i32 @{self.entry.symbol}({", ".join(passed)})
  %failed = icmp ne i32 %status, 0
  br i1 {"%failed" if kept else "true"}, label %clear, label %over
clear:
  {give_back}
  br label %over
over:
  call void @PyEval_RestoreThread(ptr %lock)
  %found = zext i32 %status to i64
  ret i64 %found
differ:
  call void @PyErr_Clear()
  ret i64 {OTHER_TYPES}
}}
"""


def _release(parts: int) -> str:
    return f"""
define void @{RELEASE}(ptr %out) {{
  %arena = getelementptr i8, ptr %out, i64 {SLOT * parts}
  call void @arena_give_back(ptr %arena, ptr null, i64 0)
  ret void
}}
"""


def _check_contiguous(kind: Type) -> None:
    if isinstance(kind, Array) and not kind.contiguous:
        raise KernelTypeError("an array with gaps is returned")
    if isinstance(kind, Tuple):
        for item in kind.items:
            _check_contiguous(item)


class _EntryPoint:
    """How arguments are taken out of Python's objects."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def taken(self, item: str, kind: Type) -> list[str]:
        """The parts of an argument."""
        text = self.text
        if isinstance(kind, Array):
            return self._array(item, kind)
        if isinstance(kind, Tuple):
            size = text.compute(f"call i64 @PyTuple_Size(ptr {item})")
            self._need(text.compute(f"icmp eq i64 {size}, {len(kind.items)}"))
            parts = []
            for at, inner in enumerate(kind.items):
                parts += self.taken(text.compute(f"call ptr @PyTuple_GetItem(ptr {item}, i64 {at})"), inner)
            return parts
        if kind == BOOL:
            # Python's and numpy's own truth values; an int would pass `PyObject_IsTrue` as well.
            own = self._at(item, _TYPE, "ptr")
            same = [
                text.compute(f"icmp eq ptr {own}, {self._at('%types', SLOT * place, 'ptr')}")
                for place in (1, 2)
            ]
            self._need(text.compute(f"or i1 {same[0]}, {same[1]}"))
            number = text.compute(f"call i32 @PyObject_IsTrue(ptr {item})")
            return [text.compute(f"icmp ne i32 {number}, 0")]
        if kind == INT:
            return [self._number(item, "i64 @PyLong_AsLongLong", "icmp eq i64", "-1")]
        if kind == FLOAT:
            return [self._number(item, "double @PyFloat_AsDouble", "fcmp oeq double", "-1.0")]
        if kind == NOTHING:
            return []
        raise KernelTypeError(f"{kind} is no type of an argument")

    def _number(self, item: str, function: str, test: str, doubtful: str) -> str:
        """A number; what may be one, or a failure, is looked at twice."""
        text = self.text
        # -1 is a number and the sign of an error: only then is the interpreter asked which it is.
        number = text.compute(f"call {function}(ptr {item})")
        asked, good = text.new_label(), text.new_label()
        text.branch(text.compute(f"{test} {number}, {doubtful}"), asked, good)
        text.label(asked)
        error = text.compute("call ptr @PyErr_Occurred()")
        text.branch(text.compute(f"icmp eq ptr {error}, null"), good, "differ")
        text.label(good)
        return number

    def _array(self, item: str, kind: Array) -> list[str]:
        text = self.text
        self._need(
            text.compute(f"icmp eq ptr {self._at(item, _TYPE, 'ptr')}, {self._at('%types', 0, 'ptr')}")
        )
        dimensions = self._at(item, _DIMENSIONS, "i32")
        self._need(text.compute(f"icmp eq i32 {dimensions}, {kind.dimensions}"))
        entry = self._at(item, _KIND, "ptr")
        number = np.dtype(kind.dtype).num
        self._need(text.compute(f"icmp eq i32 {self._at(entry, _NUMBER, 'i32')}, {number}"))
        self._need(text.compute(f"icmp ne i8 {self._at(entry, _ORDER, 'i8')}, {_SWAPPED}"))
        # Code for contiguous arrays computes strides from lengths, and reads none.
        mask = _ALIGNED | (_CONTIGUOUS if kind.contiguous else 0)
        flags = text.compute(f"and i32 {self._at(item, _FLAGS, 'i32')}, {mask}")
        self._need(text.compute(f"icmp eq i32 {flags}, {mask}"))
        parts = [self._at(item, _DATA, "ptr")]
        for place in (_LENGTHS,) if kind.contiguous else (_LENGTHS, _STRIDES):
            row = self._at(item, place, "ptr")
            parts += [self._at(row, SLOT * at, "i64") for at in range(kind.dimensions)]
        return parts

    def _at(self, address: str, offset: int, kind: str) -> str:
        place = self.text.compute(f"getelementptr i8, ptr {address}, i64 {offset}")
        return self.text.compute(f"load {kind}, ptr {place}")

    def _need(self, condition: str) -> None:
        good = self.text.new_label()
        self.text.branch(condition, good, "differ")
        self.text.label(good)
