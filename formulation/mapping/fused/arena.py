"""What a heuristic for fused mappings sees of a network: groups, their trees in few numbers, and prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.method import Method
from tilewright.hardware.mapping.engine import Engine

Names = tuple[str, ...]
"""Layers of a group in the network's order."""


@dataclass(frozen=True)
class Menu:
    """A loop that a tree may have.

    Parameters
    ----------
    layer, dim : by which it is called
    tiles : that it may have where nothing outside cuts the same loop; the whole first
    inner : whether it stands around a sequence inside another one
    """

    layer: str
    dim: str
    tiles: tuple[int, ...]
    inner: bool


@dataclass(frozen=True)
class TreeChoice:
    """A tree of a group in few numbers, each of which may be any number of at least 0.

    Parameters
    ----------
    shape : sequences, and levels of homes
    tiles : per loop of the shape, the place of its tile among those that divide the one around it
    member : the order of loops, and places and halos of homes
    ways : per tensor from outside how it gets to its layer, by their bounds; empty for the first that fit
    """

    shape: int
    tiles: tuple[int, ...]
    member: int = 0
    ways: tuple[int, ...] = ()


class FusionArena(Protocol):
    """Groups of a network on a machine; what is priced is kept if it is the best of its group."""

    @property
    def limits(self) -> Limits:
        """Of the whole search; a price raises ``LimitReachedError`` where one strikes."""

    @property
    def engine(self) -> Engine:
        """The machine, on which energy is what is minimised."""

    def order(self) -> Sequence[str]:
        """All layers, in the network's order."""

    def groups(self) -> Sequence[Names]:
        """All groups of two layers or more, small ones first."""

    def group(self, names: Names) -> FusedGroup:
        """The layers of a group."""

    def kind(self, names: Names) -> int:
        """A number that groups share which are the same but for names; what is priced for any is for all."""

    def alone(self, names: Names) -> Fraction | None:
        """pJ of some layers one by one; ``None`` where one has no mapping."""

    def shapes(self, names: Names) -> Sequence[Branch]:
        """Sequences with homes, without loops."""

    def menus(self, names: Names, shape: int) -> Sequence[Menu]:
        """The loops that a shape may have."""

    def outside(self, names: Names) -> int:
        """How many tensors come from outside the group, or leave it."""

    def price(self, names: Names, choice: TreeChoice) -> Fraction | None:
        """pJ of a tree with the best mappings of its turns; ``None`` where it does not fit."""


FusionMethod = Method[FusionArena]
