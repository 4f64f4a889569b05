"""The least cost of some chains that take turns on engines, beside other work, by exact search.

What a partial schedule of the chains can still become depends on a few numbers, its label.  Few labels stay
within some thousandths of the least cost, so that all of them are followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.herald.problem import Option
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.scheduling.herald.lower_bounds.chain_label_kernel import (
    ChainBounds,
    ChainTasks,
    Labels,
    all_within,
    keep_undominated,
    moved,
)
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_runs import engine_weights
from tilewright.solvers.scheduling.herald.walks.prices import Prices

LABELS = 60_000
"""Partial schedules of as many tasks, at which a search gives up."""
SLACK = 1e-9
"""Relative, far above the error of sums in floating point."""
_CHILDREN = 4  # labels before dominated ones are dropped, over the others
_CHEAPER = (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0)  # parts of an engine's price
_TOGETHER = (1.0, 0.3)  # parts of the weights of all engines


class ChainSchedule(NamedTuple):
    """What the relaxation says.

    Parameters
    ----------
    cost : that every schedule has at least, in cycles of makespan, plus energy at its price
    taken : where it is an optimum, tasks of the chains and the indices of their options, by their starts
    """

    cost: float
    taken: tuple[tuple[int, int], ...]


class ChainRelaxation:
    """Schedules of some chains beside work that is done at any time.

    Costs are cycles of makespan, plus energy at its price.

    Parameters
    ----------
    options : of every task
    prices : what engines and energy are worth; those of engines decide how fast the search is and which
        weights bound the other work, not what is a bound
    chains : tasks that are sequenced
    beside : whether the other tasks count; there are fewer labels where they do not

    Attributes
    ----------
    alone : whether no other tasks count
    least : what all tasks that count cost at least by the prices
    """

    def __init__(
        self,
        options: Sequence[tuple[Option, ...]],
        prices: Prices,
        chains: Sequence[Sequence[int]],
        beside: bool = True,
    ) -> None:
        self._chains = [tuple(chain) for chain in chains]
        self._engines = len(prices.engines)
        self._tasks = _chain_tasks([[options[task] for task in chain] for chain in chains], prices.energy)
        inside = {task for chain in chains for task in chain}
        others = [own for task, own in enumerate(options) if beside and task not in inside]
        self.alone = not others
        self._cycles = np.array([o.cycles for own in others for o in own], np.float64)
        self._energy = np.array([prices.energy * float(o.energy) for own in others for o in own])
        self._engine = np.array([o.engine for own in others for o in own], np.int64)
        self._first = np.array([0, *accumulate(map(len, others))][:-1], np.int64)
        rows = np.array([prices.engines, *engine_weights(prices)], np.float64)
        self._weights: Floats = rows / rows.sum(1, keepdims=True)
        self._bounds = self._stated()
        self._columns = len(self._chains) + self._engines * (1 if self.alone else 2) + 1
        self.least = self._work(self._weights[0]) + float(self._bounds.left[0, self._tasks.first].sum())

    def _stated(self) -> ChainBounds:
        """All bounds of labels, those by the prices first.

        What an engine has not run before it is free is other work or lost.  For any weights ``w`` of engines,
        1 together, and any ``0 <= u_e <= w_e`` a schedule therefore costs at least ``sum (w - u) load +
        sum u free``, energy, what is left of the chains by ``w``, and the other tasks by ``w - u``.
        """
        rows = [(0, part * self._weights[0]) for part in _TOGETHER]
        for engine in range(self._engines):
            cut = self._weights[0] * (np.arange(self._engines) == engine)
            rows += [(0, part * cut) for part in _CHEAPER]
        self._quick = len(rows)
        parts = _TOGETHER[:1] if self.alone else (*_TOGETHER, 0.0)
        for number, weights in enumerate(self._weights):
            rows += [(number, part * weights) for part in parts]
        free = np.array([cut for _, cut in rows])
        load = np.array([self._weights[number] - cut for number, cut in rows])
        tasks = self._tasks
        left = [_to_the_end(tasks, row[tasks.engine] * tasks.cycles + tasks.energy) for row in self._weights]
        return ChainBounds(
            free,
            load,
            np.array([self._work(row) for row in load]),
            np.array([number for number, _ in rows], np.int64),
            np.array(left),
            self._work(np.zeros(self._engines)),
        )

    def _work(self, weights: Floats) -> float:
        """The least that all other tasks cost by weights of engines."""
        if self.alone:
            return 0.0
        costs = weights[self._engine] * self._cycles + self._energy
        return float(np.minimum.reduceat(costs, self._first).sum())

    def bound(self, limit: float, ended: Callable[[], bool], labels: int = LABELS) -> ChainSchedule | None:
        """What every schedule costs at least: the relaxation's optimum, or the limit if that is less.

        Nothing where the search is ended, or has more partial schedules of as many tasks than it may.

        Parameters
        ----------
        limit : schedules that cost more are not followed
        ended : whether to give up
        labels : partial schedules of as many tasks, at most
        """
        limit *= 1 + SLACK
        chains = len(self._chains)
        layer, room = (_room(count, chains, self._engines) for count in (1, _CHILDREN * labels))
        layer.place[0] = self._tasks.first
        layers = []
        for _ in range(sum(map(len, self._chains))):
            count = moved(self._tasks, self._bounds, self._quick, layer, limit, room)
            if ended() or count < 0:
                return None
            layer = self._best_of(_some(room, slice(count)), limit)
            if len(layer.entry) > labels:
                return None
            layers.append(layer)
        costs = self._cost(layer.row)
        least = float(costs.min(initial=limit))
        taken = self._taken(layers, int(costs.argmin())) if least < limit else ()
        return ChainSchedule(least * (1 - 2 * SLACK), taken)

    def _best_of(self, labels: Labels, limit: float) -> Labels:
        """Those that no other one at the same places dominates and that are within the limit."""
        key = labels.place @ self._tasks.radix
        order = np.lexsort((labels.row[:, : self._columns].sum(1), key))
        kept = np.zeros(len(key), np.bool_)
        keep_undominated(labels.row, key, order, self._columns, kept)
        labels = _some(labels, kept)
        within = np.zeros(len(labels.entry), np.bool_)
        all_within(self._tasks, self._bounds, labels, limit, within)
        return _some(labels, within)

    def _cost(self, rows: Floats) -> Floats:
        """What complete schedules of the chains cost, with the other work."""
        chains = len(self._chains)
        bounds = self._bounds
        by_load = ~bounds.free.any(1)
        loads = rows[:, -self._engines :] @ bounds.load[by_load].T + bounds.others[by_load]
        cost: Floats = np.maximum(rows[:, :chains].max(1) + bounds.frugal, loads.max(1))
        return cost + rows[:, chains + self._engines]

    def _taken(self, layers: Sequence[Labels], at: int) -> tuple[tuple[int, int], ...]:
        """The tasks and options by which a label came about.

        Of equal chains that are as far, the one that is ready first goes on.
        """
        entries = []
        for layer in reversed(layers):
            entries.append(int(layer.entry[at]))
            at = int(layer.source[at])
        kinds = list[int]()
        for chain, equal in enumerate(self._tasks.equal.tolist()):
            kinds.append(chain if equal < 0 else kinds[equal])
        tasks = self._tasks
        done, ready = [0] * len(kinds), [0.0] * len(kinds)
        of_label = done.copy()
        free = [0.0] * self._engines
        taken = []
        for entry in reversed(entries):
            chain, option = divmod(entry, tasks.engine.shape[1])
            alike = (c for c, kind in enumerate(kinds) if kind == kinds[chain] and done[c] == of_label[chain])
            own = min(alike, key=ready.__getitem__)
            place = tasks.first[own] + done[own]
            engine = int(tasks.engine[place, option])
            ready[own] = free[engine] = max(ready[own], free[engine]) + float(tasks.cycles[place, option])
            taken.append((self._chains[own][done[own]], option))
            done[own] += 1
            of_label[chain] += 1
        return tuple(taken)


def _chain_tasks(chains: Sequence[Sequence[tuple[Option, ...]]], price: float) -> ChainTasks:
    """Chains of tasks as arrays.

    Parameters
    ----------
    chains : the options of every task
    price : of energy, in cycles per pJ
    """
    first = [0, *accumulate(len(chain) + 1 for chain in chains)]
    shape = first[-1], max(len(own) for chain in chains for own in chain)
    engine, cycles, energy = np.full(shape, -1, np.int64), np.zeros(shape), np.zeros(shape)
    latest: dict[tuple[object, ...], int] = {}
    equal, radix = [], [1]
    for number, (start, chain) in enumerate(zip(first, chains, strict=False)):
        for place, own in enumerate(chain, start):
            for index, option in enumerate(own):
                engine[place, index], cycles[place, index] = option.engine, option.cycles
                energy[place, index] = price * float(option.energy)
        kind = tuple(tuple((o.engine, o.cycles, o.energy) for o in own) for own in chain)
        equal.append(latest.get(kind, -1))
        latest[kind] = number
        radix.append(radix[-1] * (len(chain) + 1))
    starts, equals, radices = (np.array(row, np.int64) for row in (first[:-1], equal, radix[:-1]))
    nothing = np.zeros(first[-1])
    tasks = ChainTasks(starts, equals, radices, engine, cycles, energy, nothing, nothing)
    return tasks._replace(longest=_to_the_end(tasks, cycles + energy), spent=_to_the_end(tasks, energy))


def _to_the_end(tasks: ChainTasks, costs: Floats) -> Floats:
    """Per place, the sum of the least costs up to the end of its chain; costs of shape (places, options)."""
    least = np.where(tasks.engine < 0, np.inf, costs).min(1)
    least[tasks.engine[:, 0] < 0] = 0.0
    sums = np.cumsum(least[::-1])[::-1]
    behind = [*tasks.first[1:], len(least)]
    return np.concatenate([sums[a:b] - sums[b - 1] for a, b in zip(tasks.first, behind, strict=True)])


def _some(labels: Labels, chosen: Bools | slice) -> Labels:
    """Some of the labels."""
    return Labels(labels.place[chosen], labels.row[chosen], labels.source[chosen], labels.entry[chosen])


def _room(labels: int, chains: int, engines: int) -> Labels:
    numbers = (np.zeros(labels, np.int64) for _ in range(2))
    return Labels(
        np.zeros((labels, chains), np.int64), np.zeros((labels, chains + 2 * engines + 1)), *numbers
    )


def undominated(rows: Floats) -> Floats:
    """The rows of which no other one is at most as large in every column; of equal rows the first.

    Parameters
    ----------
    rows : shape (rows, columns)
    """
    kept = np.zeros(len(rows), np.bool_)
    order = np.argsort(rows.sum(1), kind="stable")
    keep_undominated(rows, np.zeros(len(rows), np.int64), order, rows.shape[1], kept)
    return rows[kept]
