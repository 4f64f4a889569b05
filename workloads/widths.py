"""Bits of elements by kind of tensor in a model: weights, activations, the cache, and sums.

Users write ``w4a16c8s32``: weights of 4 bits, activations of 16, the cache of 8, sums of 32.  A kind that is
left out has the machine's width.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tilewright.workloads.mapping.operator import Operator, Role


class Kind(StrEnum):
    """What a tensor is to a model."""

    WEIGHTS = "weights"
    ACTIVATIONS = "activations"
    CACHE = "cache"


BITS = (4, 8, 16, 32)
MACHINE = "machine"
_TEXT = re.compile(r"(?:[wacs][0-9]+)+")
_PART = re.compile(r"([wacs])([0-9]+)")


@dataclass(frozen=True, slots=True)
class Widths:
    """Bits of elements; ``None`` for the machine's.

    Parameters
    ----------
    weights, activations, cache : wherever such a tensor is stored
    sums : of results inside the machine, until they leave for the outermost level as what they are
    """

    weights: int | None = None
    activations: int | None = None
    cache: int | None = None
    sums: int | None = None

    def __str__(self) -> str:
        parts = zip("wacs", (self.weights, self.activations, self.cache, self.sums), strict=True)
        return "".join(f"{letter}{bits}" for letter, bits in parts if bits is not None) or MACHINE


MACHINE_WIDTHS = Widths()


def parse_widths(text: str) -> Widths:
    """Widths as users write them: ``machine``, or letters with bits such as ``w4a16c8s32``.

    Raises ``ValueError`` saying what was expected.
    """
    if text == MACHINE:
        return MACHINE_WIDTHS
    expected = "expected letters w, a, c, s with 4, 8, 16 or 32 bits, such as w4a16c8s32"
    if not _TEXT.fullmatch(text):
        raise ValueError(f"{expected}, got {text!r}")
    bits: dict[str, int] = {}
    for letter, number in _PART.findall(text):
        if letter in bits:
            raise ValueError(f"{expected}, got {letter} twice")
        if len(number) > 2 or int(number) not in BITS:
            raise ValueError(f"{expected}, got {number[:9]} bits")
        bits[letter] = int(number)
    return Widths(bits.get("w"), bits.get("a"), bits.get("c"), bits.get("s"))


def checked_widths(text: str) -> str:
    """Widths in their usual form; raises ``ValueError`` as `parse_widths` does."""
    return str(parse_widths(text))


def with_widths(operator: Operator, kinds: Mapping[str, Kind], result: Kind, widths: Widths) -> Operator:
    """An operator whose tensors state the bits of their elements.

    Parameters
    ----------
    operator : as the machine's widths would have it
    kinds : of operands; a weight tensor without one holds weights, an input activations
    result : kind of the result
    widths : bits by kind

    Returns
    -------
    The operator itself where all widths are the machine's
    """
    if widths == MACHINE_WIDTHS:
        return operator
    bits = {Kind.WEIGHTS: widths.weights, Kind.ACTIVATIONS: widths.activations, Kind.CACHE: widths.cache}
    tensors = []
    for tensor in operator.tensors:
        own = Kind.WEIGHTS if tensor.role is Role.WEIGHT else Kind.ACTIVATIONS
        kind = result if tensor.is_output else kinds.get(tensor.name, own)
        sums = widths.sums if tensor.is_output and operator.is_mac else None
        tensors.append(replace(tensor, bits=bits[kind], sum_bits=sums))
    return replace(operator, tensors=tuple(tensors))
