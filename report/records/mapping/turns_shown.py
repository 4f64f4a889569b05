"""Turns of a fused mapping that a drawing shows: all, or of every loop the first trips.

Of a long run every loop has its first two trips shown if there is room, inner loops first; what room is left
goes round in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop
from tilewright.formulation.mapping.fused.turns import LeafTurns

MOST_TURNS = 16
"""Turns that are shown."""


@dataclass(frozen=True, slots=True)
class TurnShown:
    """A turn.

    Parameters
    ----------
    layer : its place among the layers, in the order of the run
    loops : around it, outermost first: name, trip, and how many trips there are
    follows : whether it runs directly after the turn that is shown before it
    """

    layer: int
    loops: tuple[tuple[str, int, int], ...]
    follows: bool


def shown_turns(tree: Branch, evaluation: FusedEvaluation) -> list[tuple[TurnShown, LeafTurns]]:
    """The turns that are shown, in the order of the run, each with all turns of its layer.

    Parameters
    ----------
    tree, evaluation : the fused mapping and what the evaluator says of it
    """
    return [*_Run(tree, evaluation).turns(tree, (), ())]


class _Run:
    """Chosen turns in the order in which they run."""

    def __init__(self, tree: Branch, evaluation: FusedEvaluation) -> None:
        self._leaves = {leaf.leaf.layer: leaf for leaf in evaluation.turns.leaves}
        self._places = {layer: place for place, layer in enumerate(self._leaves)}
        self._first: dict[int, list[int]] = {}
        self._skips = False
        branches = [*_branches(tree, 0)]
        for branch, depth in branches:
            self._first[id(branch)] = [1] * len(self._trips(branch, depth))
        grown = True
        while grown:
            grown = False
            for branch, depth in sorted(branches, key=lambda pair: -pair[1]):
                first, trips = self._first[id(branch)], self._trips(branch, depth)
                for place in reversed(range(len(trips))):
                    first[place] += 1
                    if first[place] > trips[place] or self._number(tree) > MOST_TURNS:
                        first[place] -= 1
                    else:
                        grown = True

    def _trips(self, branch: Branch, depth: int) -> tuple[int, ...]:
        """Of the branch's own loops; so many loops stand around it."""
        number = sum(isinstance(node, SharedLoop) for node in branch.nodes)
        return self._leaves[branch.layers()[0]].trips[depth : depth + number]

    def _number(self, branch: Branch) -> int:
        """Turns that are shown of a branch."""
        inside = sum(1 if isinstance(child, Leaf) else self._number(child) for child in branch.children)
        return math.prod(self._first[id(branch)]) * inside

    def turns(
        self, branch: Branch, names: tuple[str, ...], around: tuple[int, ...]
    ) -> Iterator[tuple[TurnShown, LeafTurns]]:
        """The chosen turns of a branch.

        Parameters
        ----------
        branch : whose turns
        names, around : of the loops around it, and their trips at this moment
        """
        names = (*names, *(node.name for node in branch.nodes if isinstance(node, SharedLoop)))
        trips, first = self._trips(branch, len(around)), self._first[id(branch)]
        for own in itertools.product(*map(range, first)):
            for child in branch.children:
                if isinstance(child, Leaf):
                    yield from self._turn(self._leaves[child.layer], names, (*around, *own))
                else:
                    yield from self.turns(child, names, (*around, *own))
            ended = [place for place, index in enumerate(own) if index + 1 == first[place]]
            self._skips |= any(
                first[place] < trips[place] for place in ended if {*range(place, len(own))} <= {*ended}
            )

    def _turn(
        self, leaf: LeafTurns, names: tuple[str, ...], indices: tuple[int, ...]
    ) -> Iterator[tuple[TurnShown, LeafTurns]]:
        if not leaf.boxes.alive[flat_index(indices, leaf.trips)]:
            return
        loops = tuple(zip(names, indices, leaf.trips, strict=True))
        yield TurnShown(self._places[leaf.leaf.layer], loops, not self._skips), leaf
        self._skips = False


def _branches(branch: Branch, depth: int) -> Iterator[tuple[Branch, int]]:
    """A branch and those inside, each with the number of loops around it."""
    yield branch, depth
    depth += sum(isinstance(node, SharedLoop) for node in branch.nodes)
    for child in branch.children:
        if isinstance(child, Branch):
            yield from _branches(child, depth)


def flat_index(indices: Sequence[int], trips: Sequence[int]) -> int:
    """The place of a turn among all."""
    place = 0
    for index, trip in zip(indices, trips, strict=True):
        place = place * trip + index
    return place
