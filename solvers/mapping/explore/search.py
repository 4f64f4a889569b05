"""The search over a design grid: which cell is computed next, and when nothing is left to compute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.hardware.mapping.design_space import Design
from tilewright.solvers.mapping.explore.boxes import Box, Boxes, capacity_ranks
from tilewright.solvers.mapping.explore.cells import ABOVE, BRIEF_SECONDS, Asked, Cell, Nodes, Reported
from tilewright.solvers.mapping.explore.compulsory import MOST
from tilewright.solvers.mapping.explore.features import features_of
from tilewright.solvers.mapping.explore.goals import Goal, Progress, best_of
from tilewright.solvers.mapping.explore.state import How, State
from tilewright.solvers.mapping.explore.store import ExploreStore
from tilewright.workloads.selection import SelectedLayer

Answers = Callable[[Iterable[Cell], threading.Event], Iterator[tuple[Cell, Reported]]]
"""Computes cells in whatever order and place, and asks for the next one whenever a worker is free."""

SLACK = 1.5
"""How far above what rules its design out a cell is searched: a higher bound rules out more neighbours."""
STATED = 100_000
"""Nodes that are bounded in the time in which a cell is stated and its tables are filled."""
LAYER_SECONDS = 60.0
"""Of one layer on one design, by default."""


class Watcher(Protocol):
    """Notified of what happens."""

    def goal(self, number: int, total: int, designs: int) -> None:
        """The next goal is pursued."""

    def reported(self, layer: SelectedLayer, design: int, reported: Reported, left: int) -> None:
        """A cell was computed; so many designs are left that may have to be looked at.

        Parameters
        ----------
        layer, design : which cell it was, the design by its number
        reported : its answer
        left : designs that may still have to be looked at
        """


@dataclass
class Exploration:
    """What came of an exploration.

    Parameters
    ----------
    designs : those that are machines, in the order of the grid
    goals : one per goal that was pursued, in that order, with its values
    counts : cells by how their answers came about
    searched : designs of which some layer was searched for a proof, now or in an earlier call
    """

    designs: tuple[Design, ...]
    state: State
    goals: list[Progress] = field(default_factory=list)
    counts: dict[How, int] = field(default_factory=dict)
    searched: set[int] = field(default_factory=set)


class _Over(threading.Event):
    """Set once the user or a limit has ended the search."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    def is_set(self) -> bool:
        return super().is_set() or self._limits.expired


def explore(
    designs: Sequence[Design],
    layers: Sequence[SelectedLayer],
    asked: Asked,
    goals: Sequence[Goal],
    answers: Answers,
    limits: Limits,
    *,
    store: ExploreStore | None = None,
    layer_seconds: float = LAYER_SECONDS,
    jobs: int = 1,
    watcher: Watcher | None = None,
) -> Exploration:
    """Pursue one goal after the other until each is proven or a limit strikes.

    Parameters
    ----------
    designs : all of the grid; those that are no machines are left out
    answers : who computes cells
    store : earlier proofs, and where new ones are written
    jobs : how many cells are computed side by side
    """
    usable = tuple(design for design in designs if design.engine is not None)
    engines = [design.engine for design in usable if design.engine is not None]
    exploration = Exploration(usable, State(engines, layers, asked, limits), counts=dict.fromkeys(How, 0))
    over = _Over(limits)
    for number, goal in enumerate(goals, 1):
        # A new goal may ask for more than the one before was content with.
        exploration.state.reopen()
        pursuit = _Pursuit(exploration, goal, limits, store, layer_seconds, jobs)
        exploration.goals.append(pursuit.progress)
        if watcher is not None:
            watcher.goal(number, len(goals), len(usable))
        for cell, reported in answers(pursuit, over):
            layer, design = pursuit.answered(cell, reported)
            if watcher is not None:
                watcher.reported(layers[layer], design, reported, pursuit.left)
        pursuit.progress.refresh()
    exploration.counts[How.SHARED] = exploration.state.shared
    return exploration


@dataclass
class _Active:
    """A design whose layers are being computed, and the box that it was taken from."""

    design: int
    box: Box


@dataclass
class _Pace:
    """How much a layer's searches have raised its bounds, and the work that they were.

    Parameters
    ----------
    raised : sum over searches of the bound after it over the bound before, less 1
    work : nodes of all of them, and what each takes besides; seconds would differ from run to run
    """

    raised: float = 0.0
    work: int = 0

    def note(self, before: float, after: float, nodes: int) -> None:
        """Take in one search."""
        if 0 < before < np.inf and after < np.inf:
            self.raised += after / before - 1
        self.work += STATED + nodes


class _Pursuit:
    """Cells for one goal, each chosen when it is asked for; there may be none now and some later."""

    def __init__(
        self,
        exploration: Exploration,
        goal: Goal,
        limits: Limits,
        store: ExploreStore | None,
        seconds: float,
        jobs: int,
    ) -> None:
        self.progress = Progress(exploration.state, goal)
        self._state = exploration.state
        self._counts = exploration.counts
        self._searched = exploration.searched
        self._limits = limits
        self._store = store
        self._seconds = min(seconds, BRIEF_SECONDS) if goal.brief else seconds
        self._most = max(1, jobs)
        capacities = [features_of(engine).capacities for engine in self._state.engines]
        width = max(map(len, capacities))
        columns = [
            [
                np.inf if len(row) <= index or row[index] is None else float(row[index] or 0)
                for row in capacities
            ]
            for index in range(width)
        ]
        self._boxes = Boxes(
            np.array([design.place for design in exploration.designs]), capacity_ranks(columns)
        )
        self._active: list[_Active] = []
        self._running: dict[str, tuple[int, int]] = {}
        # Layers without a pace yet come in the order of their work.
        macs = [
            count * layer.operator.iterations
            for count, layer in zip(goal.least_counts, self._state.layers, strict=True)
        ]
        self._order = [layer for layer in np.argsort(macs)[::-1].tolist() if layer in goal.counting]
        self._pace = {layer: _Pace() for layer in self._order}

    @property
    def left(self) -> int:
        """Designs that may have to be looked at."""
        self.progress.refresh()
        return int(self.progress.needed(self.progress.low()).sum())

    def __iter__(self) -> Iterator[Cell]:
        return self

    def __next__(self) -> Cell:
        while not self._limits.expired:
            self._retire()
            for active in self._active:
                cell = self._next_of(active.design)
                if cell is not None:
                    return cell
            if any(self._is_done(active) for active in self._active):
                continue  # kept and carried answers have settled it
            if len(self._active) >= self._most or not self._activate():
                raise StopIteration
        raise StopIteration

    def answered(self, cell: Cell, reported: Reported) -> tuple[int, int]:
        """Take in an answer; gives the layer and the design that it was computed for."""
        layer, design = self._running.pop(cell.key)
        if self._store is not None and (reported.proven or reported.status == ABOVE):
            self._store.put(cell, reported)
        self._record(layer, design, reported, How.SEARCHED)
        return layer, design

    def _record(self, layer: int, design: int, reported: Reported, how: How) -> None:
        self._counts[how] += 1
        if not self.progress.goal.brief:
            self._searched.add(design)
        before = float(self._state.bounds[layer].low[design])
        self._state.record(layer, design, reported, how)
        self._pace[layer].note(before, float(self._state.bounds[layer].low[design]), reported.nodes)

    def _next_of(self, design: int) -> Cell | None:
        """The design's next cell that has to be computed."""
        for layer in self._by_pace(design):
            if self._state.answered[layer, design]:
                continue
            if self._state.carry(layer, design):
                self._counts[How.CARRIED] += 1
                continue
            remaining = self._limits.remaining
            # No search is promised more time than is left.
            seconds = self._seconds if remaining is None else min(self._seconds, max(remaining, 0.01))
            cell = replace(
                self._state.cell(layer, design, seconds),
                cap=self.progress.cap(layer, design, SLACK),
                starts=self._starts(layer, design),
                brief=self.progress.goal.brief,
            )
            # Another worker is at the same question; its answer will serve both.
            if cell.key in self._running:
                continue
            kept = None if self._store is None else self._store.get(cell.key)
            if kept is not None and kept.suffices(cell.cap):
                self._record(layer, design, kept, How.KEPT)
                if self._is_done(_Active(design, ())):
                    return None
                continue
            self._running[cell.key] = layer, design
            return cell
        return None

    def _starts(self, layer: int, design: int) -> tuple[Nodes, ...]:
        """The mapping that was found on the nearest design, if any: a bound from above where it fits.

        A second one saves hardly any node.
        """
        mappings = self._state.mappings[layer]
        near = min(mappings, key=lambda other: (self._boxes.distance(design, other), other), default=None)
        return () if near is None else (mappings[near],)

    def _by_pace(self, design: int) -> list[int]:
        """Layers by what their searches add to a design's bound for the work; those of no search yet first.

        A design is beaten by its bound, so the layers that raise it cheaply come first: the dear ones are
        left out, or searched under a lower cap.
        """

        def rise(layer: int) -> float:
            pace = self._pace[layer]
            if not pace.work:
                return float("inf")
            return min(self.progress.share(layer, design), MOST) * pace.raised / pace.work

        return sorted(self._order, key=rise, reverse=True)

    def _is_done(self, active: _Active) -> bool:
        self.progress.refresh()
        return not self.progress.needed(self.progress.low())[active.design]

    def _retire(self) -> None:
        """Designs that are settled or ruled out leave, and the boxes that they stood for are halved."""
        self.progress.refresh()
        low = self.progress.low()
        needed = self.progress.needed(low)
        for active in [candidate for candidate in self._active if not needed[candidate.design]]:
            self._active.remove(active)
            self._boxes.halve(active.box, low)

    def _activate(self) -> bool:
        low = self.progress.low()
        needed = self.progress.needed(low)
        for active in self._active:
            # Designs that are being worked on are not taken a second time.
            needed[active.design] = False
        best = best_of(self.progress.values, None)
        adjacent = needed & self._boxes.neighbours(best) if best is not None else needed[:0]
        # Walk to a good design first: the better it is, the less of the others is searched
        if adjacent.any():
            members = np.flatnonzero(adjacent)
            self._active.append(_Active(int(members[np.argmin(low[members])]), ()))
            return True
        taken = self._boxes.take(needed, low)
        if taken is None:
            return False
        self._active.append(_Active(*taken))
        return True
