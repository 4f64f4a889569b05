"""What shared stores move, as a record."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Movement:
    """What goes between two levels for a shared store, over the whole run.

    Parameters
    ----------
    tensor : its name, the layer's before it
    outer, inner : the levels
    elements : moved in, or out for a result
    again : partial sums that come back in
    accesses : elements by level and kind (``reads``, ``fills``, ``updates``)
    energies : pJ by component
    cycles : nothing else moves meanwhile
    purpose : of what moves within one level; empty between levels
    """

    tensor: str
    outer: str
    inner: str
    elements: int
    again: int
    accesses: MappingABC[tuple[str, str], int]
    energies: MappingABC[str, Fraction]
    cycles: int
    purpose: str = ""

    @property
    def energy(self) -> Fraction:
        """pJ of all components."""
        return sum(self.energies.values(), Fraction(0))
