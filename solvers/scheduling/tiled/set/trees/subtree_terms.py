"""The terms of `subtrees.py`: what is asked of subtrees, its limits, and the classes that answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.scheduling.tiled.set.leaf.leaf_figures import Given, Taken
from tilewright.solvers.scheduling.tiled.set.trees.rows import Kind


class Asked(NamedTuple):
    """Subtrees that the same tree may have in the same place.

    Parameters
    ----------
    mask : layers, as a set of bits
    samples : of one run
    stored : layers whose results go to DRAM for others, as a set of bits
    fetched : reads of results from outside that are not direct, as a set of bits
    timed : whether the processing time matters
    whole : whether the place is that of all tiles
    given : direct reads from outside of results whose layout is known
    """

    mask: int
    samples: int
    stored: int
    fetched: int
    timed: bool
    whole: bool = False
    given: Given = ()


class Limit(NamedTuple):
    """By place, the most pJ of the whole batch and cycles of one run that are not pruned.

    Parameters
    ----------
    number : limits of different numbers are for trees of different cycles, with caches of their own
    """

    energy: Floats
    cycles: Floats
    number: int = 0

    def covers(self, other: Limit) -> bool:
        """Whether nothing within another limit is beyond this one."""
        return bool((other.energy <= self.energy).all() and (other.cycles <= self.cycles).all())

    def widened(self, other: Limit) -> Limit:
        """The least limit that covers both."""
        energy, cycles = np.maximum(self.energy, other.energy), np.maximum(self.cycles, other.cycles)
        return Limit(energy, cycles, self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Subtrees:
    """A class of subtrees.

    Parameters
    ----------
    asked : what it answers
    time : normalized processing time of all; 0 where it does not matter
    taken : bounds by place
    ways : cuts that make them; none of a leaf
    """

    asked: Asked
    time: float
    taken: Taken
    ways: list[Way]


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """Cuts of one kind over classes of children.

    Parameters
    ----------
    slots : times that the slowest child of an S cut takes, children's runs of a T cut
    passed : pJ of a hop of all that one child passes on to another, by producer and reader; of an S cut
    tables : per child, the table of `Distances` for its results
    """

    kind: Kind
    groups: int
    slots: int
    passed: Floats
    tables: Int64s
    children: tuple[Subtrees, ...]
