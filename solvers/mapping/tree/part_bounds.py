"""What parts of the energy cost at least under one storage, each found by a search of its own.

Nodes are bounded by the sum of what intervals tell of the parts, and by their least values where these are
more (``docs/proofs.md``, energy by stores).  Parts are asked for one by one, no further than the goal needs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from collections.abc import Mapping as MappingABC
from contextlib import suppress

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.foundation.arrays import Floats
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.division import Division
from tilewright.solvers.mapping.tree.goals import BAND, Goal, LeastEnergy
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.nodes import Nodes

_EFFORT = 2_000_000  # nodes bounded in looking at the outer levels alone
_RELAXED_EFFORT = 16_000_000  # and at one store alone, which has fewer terms
_MOST_KEPT = 100_000_000  # bytes of layouts that another storage may ask again
_STEPS = 1.002 ** np.arange(1500)
"""Up to twenty times a bound."""


class PartBounds:
    """Lower bounds of the parts of a divided energy.

    Parameters
    ----------
    layout : that reads the energy divided so
    """

    def __init__(self, search: LayerSearch, goal: Goal, layout: Layout, division: Division) -> None:
        self._search, self._goal, self._layout, self._division = search, goal, layout, division
        self._parts = [
            term for term in division.parts if layout.bound_program.has_raisable_bound(term)
        ]  # others are in tables
        self._known_by_storage: dict[tuple[int, ...], dict[Expr, float]] = {}  # by storage
        self._least: dict[Hashable, tuple[float, float]] = {}  # with what would have been enough
        self._layouts: dict[Expr, Layout] = {}  # those that another storage may ask again

    def know(self, least: MappingABC[Expr, float], storage: MappingABC[Variable, int]) -> None:
        """Raise what terms cost at least under a storage, of which nothing more is asked then."""
        for term, value in least.items():
            if term in self._parts:
                self._layout.bound_program.raise_lower_bound(term, value, storage)
        self._known_by_storage[tuple(storage.values())] = dict.fromkeys(self._parts, 0.0)

    def are_complete(self, storage: MappingABC[Variable, int]) -> bool:
        """Whether every part has been asked for under a storage."""
        return len(self._under(storage)) == len(self._parts)

    def raise_next(self, storage: MappingABC[Variable, int], nodes: Nodes) -> bool:
        """Find what one more part costs at least under the storage of some nodes; whether there was one."""
        lower_bounds = self._under(storage)
        term = next((term for term in self._parts if term not in lower_bounds), None)
        if term is None:
            return False
        lower_bounds[term] = 0.0
        with suppress(LimitReachedError):
            lower_bounds[term] = self._known_least(term, storage, self._enough(term, nodes, lower_bounds))
            if not math.isinf(lower_bounds[term]):  # nothing is legal, which the search itself will find
                self._layout.bound_program.raise_lower_bound(term, lower_bounds[term], storage)
        return True

    def _under(self, storage: MappingABC[Variable, int]) -> dict[Expr, float]:
        """The lower bounds known under a storage."""
        return self._known_by_storage.setdefault(tuple(storage.values()), {})

    def _enough(self, term: Expr, nodes: Nodes, lower_bounds: MappingABC[Expr, float]) -> float:
        """The least value of a term, of some values tried, with which nothing in the nodes is wanted."""
        rest = sum(lower_bounds.get(other, 0.0) for other in self._division.others_of(term))
        energy: Floats = np.asarray(max(1.0, float(nodes.energy.min())) * _STEPS, dtype=np.float64)
        cycles = np.full(len(energy), float(nodes.cycles.min()))
        a, b = self._layout.powers
        wanted = self._goal.wanted(energy, cycles, energy**a * cycles**b)
        return math.inf if wanted.all() else max(0.0, float(energy[np.argmin(wanted)]) - rest)

    def _known_least(self, term: Expr, storage: MappingABC[Variable, int], enough: float) -> float:
        """The least value of a term, or enough; found once for all storages that are alike for it."""
        alike = term, self._division.parts[term].under(storage)
        least, asked = self._least.get(alike, (0.0, 0.0))
        if asked < enough and least >= asked:
            most = _RELAXED_EFFORT if term in self._division.relaxed else _EFFORT
            least = self.least_value(term, storage, most, enough)
            self._least[alike] = least, enough
        return least

    def least_value(
        self, term: Expr, storage: MappingABC[Variable, int], most: int, enough: float = math.inf
    ) -> float:
        """Lower bound of a term over the whole space, from a search of its own.

        Parameters
        ----------
        storage : options of the choices of storage
        most : nodes that the search may bound
        enough : a bound above which nothing more is asked
        """
        layout = self._layouts.get(term)
        if layout is None:
            part = self._division.parts[term]
            layout = self._layout.of_part(part.energy, part.limits, part.stages)
            # Without choices of storage every term is asked for once: its tables may go.
            kept = sum(known.bound_program.bytes for known in self._layouts.values())
            if storage and layout.bound_program.bytes + kept <= _MOST_KEPT:
                self._layouts[term] = layout
        goal = LeastEnergy(enough)
        search = BestFirst(self._search, goal, layout, storage)
        search.limit(most)
        left = search.run()
        least = min(goal.best, math.inf if left is None else left)
        return least if least < EXACT_LIMIT else least * (1 - BAND)
