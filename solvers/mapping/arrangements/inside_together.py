"""What machines that differ in what levels outside the array store leave inside it, listed together.

The inside (:func:`~tilewright.formulation.mapping.parts.segment_parts.inside_part`) has the same tiles
whatever near levels store, and nearly the same counts.  So one search for each sequence of points inside
lists what may be of interest on any of these machines: what is stored near is one more choice, made before
all tiles.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.parts.near_storage import (
    Storage,
    near_levels,
    spent_elsewhere,
    storage_of,
    storage_under,
)
from tilewright.formulation.mapping.parts.segment_cycles import filled
from tilewright.formulation.mapping.parts.segment_parts import charged, inside_part, within
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.arrangements.pairs import ManyTilesError
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.survivors import ListedDecisions
from tilewright.solvers.mapping.compiled.cuts import Cut
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves

_MOST = 4_000_000  # nodes bounded for all sequences of points, by storages; a fourth of these for one
_MOST_KEPT = 1_000_000  # decisions
_SHARE = 0.3  # of the time that is left


class InsideTogether:
    """What is left inside, on machines that store the same there.

    Parameters
    ----------
    goal : tells what is of interest
    machine : one of them
    tables : what searches of parts read
    """

    def __init__(self, search: LayerSearch, goal: Goal, machine: LayerProblem, tables: PartTables) -> None:
        self._search, self._goal, self._tables = search, goal, tables
        engine, end = machine.engine, near_levels(machine.engine)[-1] + 1
        levels = (*search.problem.engine.levels[:end], *engine.levels[end:])
        self._problem = replace(machine, engine=replace(engine, levels=levels))
        self._outside: dict[Storage, int] = {}
        self._inner: Sequence[Arrangement] = ()
        self._kept: dict[Arrangement, _Kept] = {}
        self._is_listed = False

    @staticmethod
    def key(machine: LayerProblem) -> Hashable:
        """What machines have in common that store the same inside."""
        return tuple(level.keeps for level in machine.engine.levels[near_levels(machine.engine)[-1] + 1 :])

    def expect(self, machine: LayerProblem, outside: int, inner: Sequence[Arrangement]) -> None:
        """Have it listed what is left on a machine, too.

        Parameters
        ----------
        outside : energy (scaled) that is spent there outside at least
        inner : the sequences of points inside, which all these machines have
        """
        self._inner = inner
        self._outside[storage_of(machine)] = outside

    def left(self, machine: LayerProblem) -> Iterator[tuple[Arrangement, ListedDecisions]]:
        """What is of interest now on one of the machines expected, where anything is.

        Raises ``LimitReachedError`` where a limit strikes, `ManyTilesError` where too much is left.
        """
        if not self._is_listed:
            self._list()
        for inner, kept in self._kept.items():
            listed = kept.listed(storage_of(machine), len(self._kept))
            if listed.count:
                yield inner, listed

    def _list(self) -> None:
        """Find what is of interest on all machines."""
        search, most = self._search, _MOST * len(self._outside)
        before, share = search.tally.nodes, search.limits.share(_SHARE)
        for inner in self._inner:
            search.limits.check()
            alone = filled(inside_part(self._problem, inner), self._problem)
            part = charged(alone, self._problem.objective, spent_elsewhere(alone, self._outside))
            kept = _Kept(self._goal, part)
            tree = BestFirst(search, kept, self._tables.layout(part, search, kept))
            if tree.empty:
                continue
            tree.limit(most // 4)
            tree.begin(dive=False)
            left = tree.go_on(over=lambda: share.expired)
            search.limits.check()
            if left is not None or search.tally.nodes - before > most or kept.count > _MOST_KEPT:
                raise ManyTilesError
            self._kept[inner] = kept
        self._is_listed = True


class _Kept(Goal):
    """All decisions that another goal wants of a part, by what is stored.

    Attributes
    ----------
    count : how many
    """

    def __init__(self, goal: Goal, part: LayerProblem) -> None:
        self.both = goal.both
        self.count = 0
        self._goal, self._part = goal, part
        self._leaves: dict[Storage, list[Leaves]] = {}

    def cut(self) -> Cut:
        """What the other goal wants."""
        return self._goal.cut()

    def take(self, leaves: Leaves) -> None:
        """Keep them."""
        self.count += len(leaves)
        storage = storage_under(self._part, leaves.chosen)
        self._leaves.setdefault(storage, []).append(leaves)

    def listed(self, storage: Storage, parts: int) -> ListedDecisions:
        """What the other goal wants now under a storage.

        Parameters
        ----------
        parts : how many such lists there are at once
        """
        listed = ListedDecisions(self._goal, self._part, within(self._part.space), parts)
        for leaves in self._leaves.get(storage, ()):
            wanted = leaves.take(self._goal.wanted(leaves.energy, leaves.cycles, leaves.keys))
            if len(wanted):
                listed.take(wanted)
        return listed
