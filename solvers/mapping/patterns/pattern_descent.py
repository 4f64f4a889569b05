"""Mappings of single storage patterns, each better than the one before, while little is known of bounds.

It begins with machines of one inner level or none.  From the best pattern known it goes on to patterns in
which one tensor, or all of them, are stored in one level more or less, those of few levels first.  Every
pattern has one dive on a machine of its own, with halved tiles where there are very many, unless bounds say
that nothing better is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from tilewright.formulation.limits import TablesTooLargeError
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.first_mapping import offer_any_mapping
from tilewright.solvers.mapping.patterns.pattern_machines import (
    PatternSearch,
    Stores,
    levels_of,
    on_own_machine,
    stores_of,
)
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.tree import Tree

_MOST = 20_000  # rows of tiles with which a pattern is looked at


class Descent:
    """A walk over patterns of one search.

    Parameters
    ----------
    source : what finds mappings
    may_improve : whether a pattern may have something better, as far as is known
    """

    def __init__(
        self, search: LayerSearch, source: str, may_improve: Callable[[Stores], bool] = lambda _stores: True
    ) -> None:
        self._search, self._source, self._may_improve = search, source, may_improve
        residency = search.problem.space.nest.residency
        self._alternatives = [residency[t.name].alternatives for t in search.problem.operator.tensors]
        self._tried: set[Stores] = set()

    def begin(self) -> None:
        """Offer mappings with the fewest stores and one inner level; raises where a limit strikes."""
        for inner in range(len(self._search.problem.engine.levels)):
            # Of each tensor the fewest levels besides this one: those that must store it.
            self._improves(
                tuple(
                    min(own, key=lambda levels: (inner not in levels, len(levels)))
                    for own in self._alternatives
                )
            )
        offer_any_mapping(self._search, lambda: self._search.done)

    def steps(self) -> Iterator[None]:
        """Walk until no neighbour is better, a pattern a step."""
        if self._search.answer is None:
            self.begin()
            yield
        place = self._place()
        while place is not None:
            for stores in self._neighbours(place):
                if stores in self._tried or not self._may_improve(stores):
                    continue
                is_better = self._improves(stores)
                yield
                if is_better:
                    break
            moved = self._place()
            place = None if moved == place else moved

    def _place(self) -> Stores | None:
        """The pattern of the best mapping."""
        answer = self._search.answer
        return None if answer is None else stores_of(self._search.problem, answer)

    def _neighbours(self, stores: Stores) -> list[Stores]:
        """Patterns a move away; those of the fewest levels first, which take a moment."""
        changed = dict.fromkeys(self._moved(stores, *move) for move in self._moves())
        return sorted(changed, key=lambda stores: len(levels_of(stores)))

    def _moves(self) -> list[tuple[int, int | None]]:
        """Levels whose stores change, with the place of a tensor or ``None`` for all of them."""
        levels = [*reversed(range(1, len(self._search.problem.engine.levels)))]
        places = range(len(self._alternatives))
        return [(level, place) for place in (None, *places) for level in levels]

    def _moved(self, stores: Stores, level: int, place: int | None) -> Stores:
        """The pattern with a level more or less of one tensor, or of all, where the machine allows it."""
        if place is not None:
            changed = self._changed(place, stores[place], level, level not in stores[place])
            return (*stores[:place], changed, *stores[place + 1 :])
        is_stored = all(level in own for own in stores)
        return tuple(self._changed(at, own, level, not is_stored) for at, own in enumerate(stores))

    def _changed(self, place: int, own: tuple[int, ...], level: int, is_stored: bool) -> tuple[int, ...]:
        """A tensor's levels with one more or less, where the machine allows it."""
        changed = tuple(sorted({*own, level} if is_stored else {*own} - {level}))
        return changed if changed in self._alternatives[place] else own

    def _improves(self, stores: Stores) -> bool:
        """Whether a look at a pattern that was not tried before finds a better mapping."""
        if stores in self._tried or self._search.done:
            return False
        self._tried.add(stores)
        whole = self._search.problem
        part = on_own_machine(whole, stores)
        if part.space.rows > _MOST and not part.space.nest.perfect:
            part = part.with_halved_tiles()
        if part.space.rows > _MOST:
            return False
        before = self._search.key
        inner = PatternSearch(self._search, part)
        with suppress(TablesTooLargeError):
            tree = Tree(inner, Minimum(inner, self._source), part)
            if not tree.empty:
                tree.add({}, {}, dive=True)
        return self._search.key != before
