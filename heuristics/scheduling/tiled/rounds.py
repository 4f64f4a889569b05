"""Which atoms run in which round: Atomic Dataflow's dynamic program (section IV-B, algorithm 2).

A round is at most as many executable atoms as there are engines, and lasts as long as its longest atom.  The
cost of what is left depends on nothing but what is left, so it is remembered (the paper's ``Table``).  Not
all combinations of the candidates are tried: they are taken level by level,

1. atoms of layers that have begun,
2. atoms of layers as deep as those,
3. atoms of other layers,
4. atoms of later samples, in the same three levels each,

and only within the level that no longer fits is there a choice.  The paper does not say how the choices there
are kept few.  Here each option is one way to sort that level: by layer, longest way to the end first, longest
atom first, shortest atom first; ``options=0`` tries every combination.  A network has hundreds of rounds, and
the paper does not say how deep it recurses either: ``lookahead`` rounds are looked at, and beyond them what
is left costs its work over all engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.paths import path_lengths
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Int32s, Int64s, distinct
from tilewright.heuristics.scheduling.tiled.lists import successors_of

TIES = 4
"""Ways to sort a level."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """What is left: per task the producers it waits for, executable tasks, atoms per layer, and cycles."""

    waiting: Int32s
    ready: Int64s
    left: Int64s
    work: int


@dataclass(eq=False)
class RoundOrder:
    """Algorithm 2 on one DAG.

    Parameters
    ----------
    engines : atoms of one round, at most
    options : ways to fill a level that does not fit, at most 4; 0 for every combination
    lookahead : rounds whose choices are weighed together; 0 for all that are left
    ranked : whether the priority rules hold; otherwise all candidates are of one level
    """

    dag: AtomicDag
    engines: int
    options: int = 1
    lookahead: int = 1
    ranked: bool = True
    _table: dict[tuple[bytes, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dag = self.dag
        starts, producers = dag.edges
        self._out_starts, self._out = successors_of(starts, producers, dag.tasks)
        self._tails = path_lengths(dag)[1]
        self._group = _groups(dag)
        samples = int(self._group.max()) // len(dag.units) + 1
        self._whole = np.bincount(self._group, minlength=samples * len(dag.units))
        self._depth = np.tile(depths(dag.units), samples)
        self._sample = np.arange(len(self._whole)) // len(dag.units)

    def steps(self, limits: Limits | None = None) -> Int32s:
        """Per task, its round; raises `LimitReachedError` where limits strike on the way."""
        step = np.zeros(self.dag.tasks, dtype=np.int32)
        state, now = self._begin(), 0
        while len(state.ready):
            check(limits)
            chosen = self._best(state, self.lookahead)[1]
            step[chosen] = now
            state, now = self._after(state, chosen), now + 1
            self._table.clear()
        return step

    def cost(self) -> float:
        """Cycles of the rounds that `steps` finds, without any movement of data."""
        longest = np.zeros(self.dag.tasks, dtype=np.int64)
        np.maximum.at(longest, self.steps(), self.dag.cycles)
        return float(longest.sum())

    def _begin(self) -> _State:
        starts, _ = self.dag.edges
        waiting = np.diff(starts).astype(np.int32)
        return _State(waiting, np.flatnonzero(waiting == 0), self._whole.copy(), int(self.dag.cycles.sum()))

    def _best(self, state: _State, depth: int) -> tuple[float, Int64s]:
        """Least cost of what is left, and the round to begin with."""
        least, first = np.inf, state.ready[:0]
        choices = list(self._choices(state))
        if len(choices) == 1 and depth == self.lookahead > 0:
            return least, choices[0]  # the first of several rounds, and no choice: its cost is of no interest
        for chosen in choices:
            cost = float(self.dag.cycles[chosen].max()) + self._rest(self._after(state, chosen), depth - 1)
            if cost < least:
                least, first = cost, chosen
        return least, first

    def _rest(self, state: _State, depth: int) -> float:
        if not len(state.ready):
            return 0.0
        if depth == 0:
            return state.work / self.engines
        key = (state.waiting.tobytes() + state.ready.tobytes(), depth)
        known = self._table.get(key)
        if known is None:
            known = self._table[key] = self._best(state, depth)[0]
        return known

    def _choices(self, state: _State) -> Iterator[Int64s]:
        """Rounds to try, under the priority rules."""
        ready = state.ready
        if len(ready) <= self.engines:
            yield ready
            return
        level = self._levels(state)[self._group[ready]] if self.ranked else np.zeros_like(ready)
        sorted_levels = np.sort(level)
        limit = sorted_levels[self.engines - 1]
        sure, rivals = ready[level < limit], ready[level == limit]
        places_left = self.engines - len(sure)
        if self.options == 0:
            for subset in combinations(rivals.tolist(), places_left):
                yield np.sort(np.concatenate([sure, np.array(subset, dtype=np.int64)]))
            return
        seen: set[bytes] = set()
        for keys in self._ties(rivals)[: self.options]:
            chosen = np.sort(np.concatenate([sure, rivals[np.lexsort(keys)[:places_left]]]))
            if chosen.tobytes() not in seen:
                seen.add(chosen.tobytes())
                yield chosen

    def _ties(self, rivals: Int64s) -> list[tuple[Int64s, ...]]:
        """Ways to sort a level, as keys for ``lexsort`` (the last one decides)."""
        cycles, tails = self.dag.cycles[rivals], self._tails[rivals]
        return [(rivals,), (rivals, -tails), (rivals, -cycles), (rivals, cycles)]

    def _levels(self, state: _State) -> Int64s:
        """Per group (layer of a sample), its level; levels of later samples come behind."""
        begun = (state.left < self._whole) & (state.left > 0)
        has = np.zeros(len(self._whole), dtype=np.bool_)
        has[self._group[state.ready]] = True
        level = np.full(len(self._whole), 2, dtype=np.int64)
        for sample in distinct(self._sample[has]):
            mine = self._sample == sample
            deep = self._depth[mine & begun] if (mine & begun).any() else self._depth[mine & has][:1]
            level[mine & np.isin(self._depth, deep)] = 1
        level[begun] = 0
        return level + 3 * self._sample

    def _after(self, state: _State, chosen: Int64s) -> _State:
        begin, end = self._out_starts[chosen], self._out_starts[chosen + 1]
        counts = end - begin
        offset = np.repeat(begin - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        out = self._out[offset + np.arange(int(counts.sum()))]
        waiting = state.waiting.copy()
        np.subtract.at(waiting, out, 1)
        fresh = distinct(out[waiting[out] == 0]).astype(np.int64)
        kept = state.ready[~np.isin(state.ready, chosen, assume_unique=True)]
        left = state.left.copy()
        np.subtract.at(left, self._group[chosen], 1)
        work = state.work - int(self.dag.cycles[chosen].sum())
        return _State(waiting, np.sort(np.concatenate([kept, fresh])), left, work)


def depths(units: tuple[Unit, ...]) -> Int64s:
    """Per layer the longest way from the network's inputs, in layers (figure 6a)."""
    depth = np.zeros(len(units), dtype=np.int64)
    for i, unit in enumerate(units):
        made = [producer.producer for producer in unit.reads if producer.producer is not None]
        depth[i] = 1 + max((int(depth[producer]) for producer in made), default=-1)
    return depth


def _groups(dag: AtomicDag) -> Int64s:
    """Per task: its sample range times the number of layers, plus its layer."""
    group = np.empty(dag.tasks, dtype=np.int64)
    for i, cuts in enumerate(dag.tilings):
        begin, end = int(dag.base[i]), int(dag.base[i + 1])
        per_sample = (end - begin) // (len(cuts.samples) - 1)
        group[begin:end] = i + len(dag.units) * (np.arange(end - begin) // per_sample)
    return group
