"""AccelForge's expressions: sets of tensors, and sizes in bits of a tensor's values."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping as MappingABC

from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

_NAMES = {
    "All": frozenset(Role),
    "Nothing": frozenset[Role](),
    "Intermediates": frozenset[Role](),
    "input": frozenset([Role.INPUT]),
    "weight": frozenset([Role.WEIGHT]),
    "output": frozenset([Role.OUTPUT]),
}
_BITS = re.compile(r"\b(All|input|weight|output)\.bits_per_value\b")
_CHOICE = re.compile(r"^(.*\S)\s+if\s+(?:input|weight|output)\s+else\s+\S+$")


def tensors(place: Field, memories: MappingABC[str, frozenset[Role]], default: str) -> frozenset[Role]:
    """The roles that a set expression gives for one layer by itself, whose tensors are no intermediates.

    Parameters
    ----------
    memories : what the memories outside keep, for expressions such as ``~MainMemory``
    default : the expression of a missing field
    """
    text = place.text("a set of tensors") if place else default
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, memories)
    except (SyntaxError, ValueError, RecursionError):
        known = ", ".join((*_NAMES, *memories))
        raise place.error(f"cannot read {text!r}, expected ~ | & - and names among {known}") from None


def _value(node: ast.expr, memories: MappingABC[str, frozenset[Role]]) -> frozenset[Role]:
    match node:
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="tensors") if name in memories:
            return memories[name]
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return frozenset(Role) - _value(inner, memories)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _value(left, memories) | _value(right, memories)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            return _value(left, memories) & _value(right, memories)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left, memories) - _value(right, memories)
    raise ValueError("no set of tensors")


def widths(place: Field, memories: MappingABC[str, frozenset[Role]], usual: int) -> dict[Role, int]:
    """Bits of every role: of those that sets of tensors name, and of all others the usual ones.

    Raises
    ------
    InputError : for a set that cannot be read, and for a role that has two widths
    """
    widths_of: dict[Role, int] = {}
    named = place.fields() if isinstance(place.value, dict) else {"All": place} if place else {}
    for expression, field in named.items():
        bits = field.whole("bits of an element")
        for role in tensors(Field(field.where, expression, field.location, field.document), memories, "All"):
            if widths_of.setdefault(role, bits) != bits:
                raise field.error(f"gives {role} {bits} bits, and another entry {widths_of[role]}")
    return dict.fromkeys(Role, usual) | widths_of


def plain(place: Field, bits: MappingABC[Role, int]) -> Field:
    """A field whose text speaks of a tensor's bits, with their number in their place."""
    if not isinstance(place.value, str):
        return place
    chosen = _CHOICE.match(place.value.strip())
    text = chosen[1] if chosen else place.value
    text = _BITS.sub(lambda named: str(max(bits[role] for role in _NAMES[named[1]])), text)
    return Field(place.where, text, place.location, place.document)
