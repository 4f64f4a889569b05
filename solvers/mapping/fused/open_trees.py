"""What a fused search has open: trees of which more and more is decided, skeletons and candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.candidate import Candidate, Skeleton
from tilewright.solvers.mapping.fused.skeletons import Cut


@dataclass(frozen=True)
class Stem:
    """Families that differ in loops of sequences inside others, which are decided one after the other."""

    tree: Branch
    cuts: tuple[Cut, ...]


@dataclass(frozen=True)
class Family:
    """Skeletons that differ in the order of loops and in places of homes."""

    tree: Branch


@dataclass(frozen=True)
class Ordered:
    """Skeletons that differ in places of homes alone."""

    tree: Branch


@dataclass(frozen=True)
class Placings:
    """Candidates of one skeleton, the one with the least bound last, so that it is opened next."""

    candidates: list[Candidate]


Item = Stem | Family | Ordered | Skeleton | Placings | Candidate


@dataclass(order=True)
class Open:
    """What is open, with the least that it may take."""

    bound: Fraction
    number: int
    item: Item = field(compare=False)
