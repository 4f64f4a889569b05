"""How much a model file unfolds to in memory, computed from its bytes before it is parsed.

Tensors' bytes stay as many; but an empty message takes two bytes of a file and a hundred of memory.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

from tilewright.foundation.errors import BudgetError, InputError
from tilewright.foundation.loading import check_limit

MOST_PARTS = 2**20
"""Messages and numbers outside of weights."""
SMALL = 2**23
"""Bytes that are parsed without a look: a hundredfold of them is bearable."""
_PACKED = 8
"""Bytes that a packed number of one byte may take."""
_DEPTH = 100
"""Messages inside each other that the parser takes."""


def check_structure(content: bytes, where: str) -> None:
    """Raise ``InputError`` for a file that unfolds to far more than its size, or that is cut off."""
    if len(content) <= SMALL:
        return
    stack = [(0, len(content), onnx.ModelProto.DESCRIPTOR, 0)]
    parts = 0
    while stack:
        at, end, kind, depth = stack.pop()
        inside = _messages(kind)
        while at < end:
            parts += 1
            if parts % 4096 == 0:
                check_limit(where)
            if parts > MOST_PARTS:
                raise BudgetError(where, None, f"expected at most {MOST_PARTS:,} parts in an ONNX model")
            key, at = _number(content, at, end, where)
            wire = key & 7
            if wire == 0:
                _, at = _number(content, at, end, where)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            elif wire == 2:
                size, at = _number(content, at, end, where)
                if at + size > end:
                    raise _broken(where)
                message = inside.get(key >> 3)
                if message is _NUMBERS:
                    parts += size // _PACKED
                elif size and message is not None and depth < _DEPTH:
                    stack.append((at, at + size, message, depth + 1))
                at += size
            else:
                raise _broken(where)


_NUMBERS = object()


@cache
def _messages(kind: Any) -> dict[int, Any]:
    """What of a message's fields is a message itself, or numbers of varying length."""
    varying = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_UINT64)
    messages = {field.number: field.message_type for field in kind.fields if field.message_type is not None}
    numbers = {field.number: _NUMBERS for field in kind.fields if field.type in varying}
    return {**numbers, **messages}


def _number(content: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    """A number of varying length, and where it ends."""
    if at < end and content[at] < 128:
        return content[at], at + 1
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _broken(where)


def _broken(where: str) -> InputError:
    return InputError(where, None, "not an ONNX model, or a truncated one")
