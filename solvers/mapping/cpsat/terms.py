"""What expressions become in a model: linear terms with bounds that fit 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LARGEST = 1 << 62  # CP-SAT's integers are 64 bits wide

Linear = Any  # an integer, a variable or a linear expression of ortools


@dataclass(frozen=True, slots=True)
class Term:
    """What an expression became: a linear expression of the model and its bounds."""

    expr: Linear
    low: int
    high: int

    @property
    def is_constant(self) -> bool:
        return self.low == self.high


def span(terms: Sequence[tuple[int, Term]], constant: int) -> tuple[int, int]:
    """Lower and upper bound of a sum."""
    low = constant + sum(c * (t.low if c > 0 else t.high) for c, t in terms)
    return low, constant + sum(c * (t.high if c > 0 else t.low) for c, t in terms)


def check_size(*values: int) -> None:
    if any(abs(value) > LARGEST for value in values):
        raise OverflowError("a count beyond 2**62: the layer is too large for CP-SAT's integers")
