"""What a candidate of the fused search consists of: turns by size, a skeleton, and places of tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tilewright.formulation.mapping.fused.tree import Branch, SharedStore
from tilewright.formulation.mapping.fused.turns import Turns
from tilewright.solvers.mapping.fused.trees.turn_engine import Rooms
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class TurnKind:
    """Turns of one size of one layer.

    Parameters
    ----------
    sizes : iterations per dimension
    operator : all turns that add to the same sums
    number : how often
    """

    sizes: tuple[int, ...]
    operator: Operator
    number: int


@dataclass(frozen=True)
class Placement:
    """How one tensor from outside the group gets to its layer's turns.

    Parameters
    ----------
    store : its shared store; ``None`` for one that every turn streams
    depth, since : shared loops outside the store, and outside the sequence that it belongs to
    traffic : pJ of moving its tiles, and of scaling its sums
    place, bits : where it takes room, and how much
    least : pJ at least, of all turns of its layer and the traffic together
    around : layers in whose turns it takes room
    """

    store: SharedStore | None
    depth: int
    since: int
    traffic: Fraction
    place: int | None
    bits: int
    least: Fraction
    around: frozenset[str] = frozenset()

    def replaces(self, other: Placement) -> bool:
        """Whether it costs and takes no more than another one in the same level, for no more layers."""
        return (
            self.store is not None
            and other.store is not None
            and self.store.level == other.store.level
            and self.traffic <= other.traffic
            and self.bits <= other.bits
            and self.around <= other.around
        )


@dataclass(frozen=True)
class Skeleton:
    """A skeleton with its turns.

    Parameters
    ----------
    tree : with homes, without residents and leaves
    turns : of the tree
    kinds : per layer
    options : per layer and tensor from outside, its placements, the one with the least bound first
    fixed : pJ at least of operations, of tensors that are passed on, of copies of those that leave, and of
        softmaxes in parts
    parts : pJ of copies, and of softmaxes in parts without scaling sums of tensors from outside, which
        `options` have
    left : what homes leave to each layer's turns; ``None`` where they do not fit
    """

    tree: Branch
    turns: Turns
    kinds: dict[str, tuple[TurnKind, ...]]
    options: dict[tuple[str, str], tuple[Placement, ...]]
    fixed: Fraction
    parts: Fraction
    left: dict[str, Rooms | None]

    def makes_all(self, layers: Collection[str]) -> bool:
        """Whether results of some layers are made whole, although readers may skip parts of them."""
        passings = self.turns.passings
        return all(passings[layer].covered for layer in layers if layer in passings)

    @property
    def bound(self) -> Fraction:
        """No candidate with this skeleton takes less."""
        return self.fixed + sum((options[0].least for options in self.options.values()), Fraction(0))


@dataclass(frozen=True)
class Candidate:
    """A skeleton with a placement of every tensor from outside.

    Parameters
    ----------
    skeleton : the tree with its homes
    chosen : per tensor, which of its placements
    """

    skeleton: Skeleton
    chosen: tuple[int, ...]

    @cached_property
    def placements(self) -> dict[tuple[str, str], Placement]:
        """Per layer and tensor."""
        options = self.skeleton.options.items()
        return {name: own[index] for (name, own), index in zip(options, self.chosen, strict=True)}

    @cached_property
    def bound(self) -> Fraction:
        """Of its turns whatever their mappings."""
        return self.skeleton.fixed + sum((own.least for own in self.placements.values()), Fraction(0))

    @property
    def traffic(self) -> Fraction:
        """pJ of shared stores."""
        return sum((own.traffic for own in self.placements.values()), Fraction(0))
