"""Chains of segments: sequences of children of a root T cut, with their costs or lower bounds on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit

Value = Callable[[float, float], float]
"""An objective of energy and cycles, rising in both."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A scheme with an energy in pJ and cycles, its own or the least that it can have."""

    scheme: SegmentScheme
    energy: float
    cycles: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A whole network in segments.

    Parameters
    ----------
    splits : subbatches of the root; each runs all segments
    energy, cycles : of the whole batch
    """

    segments: tuple[SegmentScheme, ...]
    splits: int
    energy: float
    cycles: int

    @property
    def tree(self) -> Node:
        """The chain as a resource allocation tree."""
        batch = self.segments[0].batch * self.splits
        return rooted([segment.tree for segment in self.segments], batch, self.splits)


@dataclass(frozen=True, slots=True)
class ChosenChain:
    """What a search for a chain has come to.

    Parameters
    ----------
    chain : the best one known
    bound : no chain of the slicing costs less; 0 where nothing is known
    proven : whether the best one known is the best of all
    schemes, valid : schemes looked at, and those of them that fit as far as is known
    kept : of these, those that got their costs; of KAPLA, those that no other one beats
    note : how far the search came, for people
    """

    chain: Chain | None
    bound: float = 0.0
    proven: bool = False
    schemes: int = 0
    valid: int = 0
    kept: int = 0
    note: str = ""


def loads_of(form: ClosedForm, splits: int) -> int:
    """Samples for which weights are loaded once where the root runs in subbatches."""
    return form.batch if form.rules.split_root_weights_once else form.batch // splits


def priced_chain(form: ClosedForm, segments: Sequence[SegmentScheme], splits: int) -> Chain | SegmentScheme:
    """What a row of segments costs; the first of them that the machine cannot run, if there is one."""
    loads = loads_of(form, splits)
    energy, cycles = 0.0, 0
    for segment in segments:
        cost = form.segment(segment.tree, loads)
        if isinstance(cost, Unfit):
            return segment
        energy, cycles = energy + cost.energy, cycles + cost.cycles
    return Chain(tuple(segments), splits, energy * splits, cycles * splits)
