"""What the innermost stores of storage patterns cost together, which bounds all patterns that have them.

The least costs of single levels (:mod:`tilewright.solvers.mapping.patterns.pattern_bounds`) know nothing of
each other: a tile that one level reuses well is moved often by the next one.  Patterns that store the same in
their two innermost levels differ only in what levels outside cost and in where tensors come from, so one
search of these two levels (:mod:`tilewright.solvers.mapping.patterns.inner_fronts`) bounds many of them
(``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.formulation.mapping.parts.inner_levels import InnerStores
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.solvers.mapping.levels.levels_together import inner_edges, over_tiles
from tilewright.solvers.mapping.patterns.inner_fronts import InnerFront, InnerFronts
from tilewright.solvers.mapping.patterns.pattern_machines import Stores, levels_of, on_own_machine
from tilewright.solvers.mapping.patterns.pattern_terms import Term
from tilewright.solvers.mapping.tables.stages import has_scratchpads, last_array
from tilewright.solvers.mapping.tree.goals import goal_of

_INNER = 2
"""Innermost levels that are searched together."""
_TRIES, _WORTH = 12, 0.98
"""How often mappings with the tiles of a front are looked for, and the share of the goal that its pattern may
cost at most then."""
_SHARED = 3
"""Open patterns that a search has to bound; trees of fewer take no more time."""
_LOWER = 0.05
"""By how much a goal has to fall for another search of stores of which one has not ended."""
_ROUNDING = 1e-9
"""Relative: sums of some ten parts in floating point are right well within it."""
_BEYOND = 1e-6
"""Relative: by how much more is asked than what the goal needs; far more than the rounding."""


@dataclass(frozen=True, slots=True)
class OpenPatterns:
    """All storage patterns of a problem, and what is known of them.

    Parameters
    ----------
    alternatives : per tensor, the levels that may store it; a pattern is a choice of each
    terms : of the energy, one for each level that is filled
    sums : least energy of each pattern, the sum of its terms, pJ, shape (patterns,)
    keys : lower bounds of the objective keys, in pJ and cycles, shape (patterns,); to be raised
    is_open : which of them are of interest, shape (patterns,)
    """

    alternatives: Sequence[Stores]
    terms: Sequence[Term]
    sums: Floats
    keys: Floats
    is_open: Bools

    def stores(self, pattern: int) -> Stores:
        """Per tensor, the levels that store it."""
        places = np.unravel_index(pattern, [len(own) for own in self.alternatives])
        return tuple(own[int(place)] for own, place in zip(self.alternatives, places, strict=True))

    def marked(self, marks: Sequence[Sequence[bool]]) -> Int64s:
        """The open patterns whose choices are marked, tensor by tensor."""
        are_marked: Bools = np.ones((), dtype=np.bool_)
        for own in marks:
            are_marked = np.multiply.outer(are_marked, np.asarray(own))
        return np.flatnonzero(are_marked.ravel() & self.is_open)


@dataclass(frozen=True, slots=True)
class _Known:
    """What some innermost stores cost together.

    Parameters
    ----------
    once : what they cost if every element is moved once, pJ
    below : key, in pJ and cycles, below which all was looked for
    """

    stores: InnerStores
    once: float
    below: float
    front: InnerFront


@dataclass(frozen=True, slots=True)
class InnerTiles:
    """The tiles of innermost levels with which mappings of some patterns may be wanted.

    Parameters
    ----------
    patterns : by their numbers
    part : the problem of these levels
    tiles : by axis group, at the boundaries inside the part's outermost block; none where nothing is wanted,
        ``None`` where they are too many
    """

    patterns: frozenset[int]
    part: LayerProblem
    tiles: Tiles | None


def are_bounded_together(problem: LayerProblem) -> bool:
    """Whether scratchpads behind an array, each of one tensor in all patterns, are searched together.

    Pairs of them tell little, as each keeps its own tensor in place, and trees of patterns take longer.
    """
    engine = problem.engine
    return has_scratchpads(engine) and not any(
        level.may_bypass for level in engine.levels[last_array(engine) + 1 :]
    )


def narrowed(problem: LayerProblem, tiles: Sequence[InnerTiles]) -> LayerProblem:
    """A problem of patterns with the same innermost levels over the tiles of all of them."""
    every: Tiles = {}
    for own in tiles:
        for name, rows in (own.tiles or {}).items():
            every[name] = np.concatenate([every[name], rows]) if name in every else rows
    return over_tiles(problem, inner_edges(tiles[0].part, problem)[1], every)


class PatternsTogether:
    """What innermost stores of one problem cost; a limit that strikes raises ``LimitReachedError``.

    Parameters
    ----------
    search : of the whole
    source : what finds mappings

    Attributes
    ----------
    has_scratchpads : whether scratchpads are searched together, for any open pattern
    """

    def __init__(self, search: LayerSearch, source: str) -> None:
        self._search = search
        self._engine, self._tensors = search.problem.engine, search.problem.operator.tensors
        self._powers = search.problem.objective.key_powers
        self.has_scratchpads = are_bounded_together(search.problem)
        self._fronts = InnerFronts(search, source, self.has_scratchpads)
        self._tries = 0
        # By levels, and what each tensor is stored in of them; then by all that they depend on.
        self._known: dict[tuple[object, object], dict[InnerStores, _Known]] = {}

    def innermost(self, stores: Stores) -> int | None:
        """The outermost of a pattern's levels that were searched together; ``None`` where none were."""
        inner = self._inner(stores)
        is_known = inner is not None and self._known.get((inner.levels, inner.stored))
        return inner.levels[0] if inner is not None and is_known else None

    def raise_keys(self, pattern: int, patterns: OpenPatterns) -> bool:
        """Raise the keys of a pattern and of others; whether that of the pattern has risen."""
        stores, key = patterns.stores(pattern), float(patterns.keys[pattern])

        def has_risen() -> bool:
            return bool(patterns.keys[pattern] > key * (1 + _ROUNDING))

        inner = self._inner(stores)
        if inner is None:
            return False
        known = self._known.setdefault((inner.levels, inner.stored), {})
        few = 1 if self.has_scratchpads else _SHARED
        for own in known.values():
            self._apply(own, patterns, np.asarray([pattern]))
        # What comes from the cheapest levels bounds all patterns that store the same.
        for own_stores in (self._cheapest(inner, patterns), inner):
            if has_risen():
                return True
            places = self._dearer(own_stores, patterns)
            if not self._is_known(known.get(own_stores)) and len(places) >= few:
                known[own_stores] = self._searched(own_stores, patterns)
                self._apply(known[own_stores], patterns, places)
                self._look_for_mappings(stores, float(patterns.keys[pattern]))
        return has_risen()

    def _is_known(self, known: _Known | None) -> bool:
        """Whether another search of some stores would hardly tell more: fewer nodes are below lower goals."""
        goal = goal_of(self._search)
        if known is None or goal is None:
            return False
        left = known.front.left
        return left >= known.below or known.below <= (1 + _LOWER) * float(goal)

    def _inner(self, stores: Stores) -> InnerStores | None:
        """The innermost levels of a pattern; ``None`` where they have no problem of their own."""
        stored = levels_of(stores)
        count = _INNER
        if self.has_scratchpads:
            count = sum(level > last_array(self._engine) for level in stored)
        if count >= len(stored):
            return None
        inner = InnerStores.of(stores, stored[-count:])
        return inner if inner.stand_alone_on(self._engine, stored[-count - 1]) else None

    def _cheapest(self, inner: InnerStores, patterns: OpenPatterns) -> InnerStores:
        """The same stores, each tensor coming from the cheapest level that it has in any open pattern."""
        places = patterns.marked(self._marks(inner, patterns, lambda _place, _level: True))
        shape = [len(own) for own in patterns.alternatives]
        sources: list[int] = []
        for tensor, own, chosen in zip(
            self._tensors, patterns.alternatives, np.unravel_index(places, shape), strict=True
        ):
            outside = {max(at for at in own[place] if at < inner.levels[0]) for place in {*chosen.tolist()}}
            levels = self._engine.levels
            units = {
                at: (levels[at].read_energy_of(tensor.role), levels[at].write_energy_of(tensor.role))
                for at in outside
            }
            sources.append(min(outside, key=units.__getitem__))
        return replace(inner, sources=tuple(sources))

    def _dearer(self, inner: InnerStores, patterns: OpenPatterns) -> Int64s:
        """The open patterns with the same stores inside, which come from the same levels or dearer ones."""
        levels = self._engine.levels

        def is_dearer(place: int, source: int) -> bool:
            role, least, other = self._tensors[place].role, levels[inner.sources[place]], levels[source]
            return other.read_energy_of(role) >= least.read_energy_of(role) and other.write_energy_of(
                role
            ) >= least.write_energy_of(role)

        return patterns.marked(self._marks(inner, patterns, is_dearer))

    def _marks(
        self, inner: InnerStores, patterns: OpenPatterns, comes_from: Callable[[int, int], bool]
    ) -> list[list[bool]]:
        """By tensor, which choices store it inside as some stores do.

        Parameters
        ----------
        comes_from : whether the tensor in one place may come from a level outside
        """
        first = inner.levels[0]
        # A source inside the array that these levels are next to would be a level between.
        arrays = [at for at in range(first) if self._engine.levels[at].fanout is not None]
        outermost_array = min([first - 1, *arrays])
        marks: list[list[bool]] = []
        for place, own in enumerate(patterns.alternatives):
            marks.append([])
            for stores in own:
                inside = tuple(at for at in stores if at >= first)
                source = stores[len(stores) - len(inside) - 1]
                fits = inside == inner.stored[place] and source <= outermost_array
                marks[-1].append(fits and comes_from(place, source))
        return marks

    def _searched(self, inner: InnerStores, patterns: OpenPatterns) -> _Known:
        """What some stores cost together in all open patterns in which they cost no less."""
        goal = goal_of(self._search)
        assert goal is not None
        once, known = self._least_inside(inner, patterns)
        outside = _outside(inner, once, patterns, self._dearer(inner, patterns))
        below = float(goal) * (1 + _BEYOND)
        return _Known(inner, once, below, self._fronts.found(inner, known, float(outside.min()), below))

    def _least_inside(self, inner: InnerStores, patterns: OpenPatterns) -> tuple[float, dict[int, float]]:
        """What some stores cost if every element is moved once, and each level at least, pJ."""
        once, known = 0.0, dict.fromkeys(inner.levels, 0.0)
        last = len(self._engine.levels) - 1
        for term in _inside(inner, patterns):
            number = term.parts.index(inner.part(term.level, term.level == last))
            # What PEs read counts with the innermost level of the machine, which may store nothing.
            at = term.level if term.level in known else inner.levels[-1]
            known[at] += float(term.values[number]) * (1 - _ROUNDING)
            once += float(term.compulsory[number])
        return once, known

    def tiles(self, pattern: int, patterns: OpenPatterns) -> InnerTiles | None:
        """The tiles of two innermost levels with which mappings of some open patterns may be wanted.

        They are those patterns that store the same there as one of them and get it from the same levels.
        ``None`` where these levels have no problem of their own.

        Parameters
        ----------
        pattern : the one
        """
        inner = self._inner(patterns.stores(pattern))
        if inner is None:
            return None
        places = patterns.marked(
            self._marks(inner, patterns, lambda place, level: level == inner.sources[place])
        )
        once, known = self._least_inside(inner, patterns)
        outside = _outside(inner, once, patterns, places)
        listed = self._fronts.listed(inner, known, float(outside.min()))
        return InnerTiles(frozenset(places.tolist()), *listed)

    def _apply(self, known: _Known, patterns: OpenPatterns, places: Int64s) -> None:
        """Raise the keys of those among some open patterns that a front bounds."""
        places = np.intersect1d(places, self._dearer(known.stores, patterns))
        outside = _outside(known.stores, known.once, patterns, places)
        places, outside = places[outside >= known.front.outside], outside[outside >= known.front.outside]
        keys = known.front.least_keys(outside, self._powers)
        patterns.keys[places] = np.maximum(patterns.keys[places], keys)

    def _look_for_mappings(self, stores: Stores, key: float) -> None:
        """Offer a mapping of a pattern with the tiles of the last front, where it may be much better.

        Parameters
        ----------
        key : lower bound of the pattern's, in pJ and cycles
        """
        goal = goal_of(self._search)
        if goal is None or self._tries == _TRIES or key > _WORTH * float(goal):
            return
        self._tries += 1
        self._fronts.offer(on_own_machine(self._search.problem, stores))


def _inside(inner: InnerStores, patterns: OpenPatterns) -> list[Term]:
    """The terms of the energy that some stores and all inside them cost."""
    return [term for term in patterns.terms if term.level >= inner.levels[0]]


def _outside(inner: InnerStores, once: float, patterns: OpenPatterns, places: Int64s) -> Floats:
    """What levels outside some stores cost in some patterns, pJ, and what theirs cost more in them.

    Where they come from dearer levels, every element of the difference is moved once at least.
    """
    outside = patterns.sums[places] - once
    for term in _inside(inner, patterns):
        own = term.of_pattern[places]
        outside += term.compulsory[own] - term.values[own]
    return outside * (1 - _ROUNDING)
