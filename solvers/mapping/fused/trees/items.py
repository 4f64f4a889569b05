"""What a fused search has open: sets of candidates, ever smaller, down to a single one."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.solvers.mapping.fused.trees.candidate import Candidate, Skeleton
from tilewright.solvers.mapping.fused.trees.skeletons import Cut, OuterOrder


@dataclass(frozen=True)
class Stem:
    """Families that differ in loops of sequences inside others, which are decided one after the other.

    Parameters
    ----------
    tree, cuts : what is decided, and the loops that are not
    orders : the outermost loops in each order that may be good
    bounded : whether the bound knows the room of these
    """

    tree: Branch
    cuts: tuple[Cut, ...]
    orders: tuple[OuterOrder, ...]
    bounded: bool = False


@dataclass(frozen=True)
class Family:
    """Skeletons that differ in the order of loops and in places of homes.

    Parameters
    ----------
    tree : with its loops in any order
    orders : the outermost loops in each order that may be good
    ordered : with its loops in each order that may be good; empty before these are listed
    """

    tree: Branch
    orders: tuple[OuterOrder, ...]
    ordered: tuple[Branch, ...] = ()


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
    """An item with the bound of what it stands for; of equal bounds the first one comes first."""

    bound: Fraction
    number: int
    item: Item = field(compare=False)


def least_of(value: Fraction | None, cutoff: Fraction | None) -> Fraction | None:
    """The less of what is found and what can be had otherwise."""
    known = [cost for cost in (value, cutoff) if cost is not None]
    return min(known, default=None)
