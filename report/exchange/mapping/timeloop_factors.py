"""Timeloop's factors and permutations, as lists or as texts: ``[N=1, M=4]``, ``"N1 M4"``, ``"P=4,3"``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.report.exchange.source import Field

_FACTOR = re.compile(r"([A-Za-z_]\w*?)\s*(<=|>=|==|=)?\s*([0-9]{1,15})(?:,([0-9]{1,15}))?")
_BETWEEN = re.compile(r"[\s,]+(?=[A-Za-z_])")


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor.

    Parameters
    ----------
    compare : ``=``, ``<=`` or ``>=``
    number : iterations; 0 stands for the whole dimension
    last : iterations in the last round of the loops outside, where these are fewer
    """

    dim: str
    compare: str
    number: int
    last: int


def read_factors(field: Field) -> list[Factor]:
    """The factors of a directive or constraint; raises ``InputError``, also for a dimension given twice."""
    if isinstance(field.value, str):
        pieces = [(piece.strip(" ,\t"), field) for piece in _BETWEEN.split(field.value.partition("#")[0])]
    else:
        pieces = [(entry.text("a factor such as K=4"), entry) for entry in field.entries()]
    factors: list[Factor] = []
    for text, place in pieces:
        if not text:
            continue
        match = _FACTOR.fullmatch(text)
        if match is None:
            raise place.error(f"cannot read {text!r}, expected a factor such as K=4")
        dim, compare, number, last = match.groups()
        if any(factor.dim == dim for factor in factors):
            raise place.error(f"{dim} has two factors, expected one")
        compare = "=" if compare in (None, "==") else compare
        factors.append(Factor(dim, compare, int(number), int(last or number)))
    return factors


def read_permutation(field: Field) -> list[str]:
    """Dimensions, innermost first; raises ``InputError`` for one that is named twice."""
    value = field.value
    if isinstance(value, str) and "," not in value and " " not in value.strip():
        dims = list(value.strip())
    elif isinstance(value, str) and "," not in value:
        dims = [letter for word in value.split() for letter in word]
    else:
        dims = field.words()
    for index, dim in enumerate(dims):
        if dim in dims[:index]:
            raise field.error(f"{dim} stands twice")
    return dims
