"""What heuristics that draw at random share as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tilewright import __version__
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.heuristics.mapping.candidates import Arena, begin


class StochasticMethod(ABC):
    """A method whose answer depends on the seed; a subclass has a name and explores an arena."""

    name: str
    exact = False
    stochastic = True

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: LayerSearch) -> Outcome:
        """Explore the whole space until the method or the search is done."""
        arena = begin(search, self.name)
        if arena.empty:
            return Outcome(False, "no tile sizes satisfy the constraints and fit the array")
        return Outcome(False, self.explore(search, arena, np.random.default_rng(search.limits.seed)))

    @abstractmethod
    def explore(self, search: LayerSearch, arena: Arena, random: np.random.Generator) -> str:
        """Offer what is found in an arena; a message where no legal mapping was met."""
