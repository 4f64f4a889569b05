"""Bounds from the two heaviest chains alone, by exact search: all that they can become beside other work.

The heaviest path of each of two runs is sequenced on the engines; all other tasks are work that is done in
parts at any time.  What a partial schedule of the chains can still become depends on a few numbers, and few
of these schedules stay within some thousandths of the least cost, so that all of them are followed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby

import numpy as np

from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import AssignmentRelaxation
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_runs import engine_weights
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_CHAINS = 2  # that are sequenced: with one more there are a hundred times as many partial schedules
_HEAVY = 0.25  # of the work, that they must be
_STEPS = tuple(0.0005 * 2**power for power in range(8))  # above what is proven, to be followed
_NEAR = 0.003  # by which the least cost may be less than what is proven
_LABELS = 6_000  # partial schedules of as many tasks, at which a search gives up
_PLANES = 6  # half-planes for a product
_PART = 0.1  # of the time that is left
_CHEAPER = (0.0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0)  # parts of an engine's price
_SLACK = 1e-9  # relative, far above the error of sums in floating point
_BLOCK = 64  # labels compared at a time
_NOTABLE = Fraction(1, 10**5)  # a product that rises by less ends the half-planes
_SOURCE = "heavy chains"


def heaviest_chains(
    problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], prices: Prices
) -> list[tuple[int, ...]]:
    """The heaviest path of every run, the heaviest one first.

    Parameters
    ----------
    problem : whose runs have paths
    options : of every task
    prices : what engines and energy are worth; a task weighs what its cheapest option costs
    """
    weight = [min(map(prices.of, own)) for own in options]
    heaviest: dict[int, float] = {}
    before: dict[int, int] = {}
    for task in problem.order:
        heaviest[task] = weight[task]
        for other in problem.before[task]:
            same = problem.tasks[other].instance == problem.tasks[task].instance
            if same and heaviest[other] + weight[task] >= heaviest[task]:
                heaviest[task], before[task] = heaviest[other] + weight[task], other
    chains = []
    for run in problem.instances.values():
        chain = [max(reversed(run), key=heaviest.__getitem__)]  # the longest where engines cost nothing
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        chains.append(tuple(reversed(chain)))
    return sorted(chains, key=lambda chain: -heaviest[chain[-1]])


class ChainRelaxation:
    """Schedules of some chains beside work that is done at any time.

    Costs are cycles of makespan, plus energy at its price.

    Parameters
    ----------
    options : of every task
    prices : what engines and energy are worth; those of engines decide how fast the search is and which
        weights bound the other work, not what is a bound
    chains : tasks that are sequenced

    Attributes
    ----------
    least : what all tasks cost at least by the prices
    """

    def __init__(
        self, options: Sequence[tuple[Option, ...]], prices: Prices, chains: Sequence[Sequence[int]]
    ) -> None:
        engines = len(prices.engines)
        self._counts = tuple(len(chain) for chain in chains)
        self._engines = engines
        self._options = [
            [[(o.engine, o.cycles, prices.energy * float(o.energy)) for o in options[task]] for task in chain]
            for chain in chains
        ]
        inside = {task for chain in chains for task in chain}
        others = [own for task, own in enumerate(options) if task not in inside]
        self._cycles = np.array([o.cycles for own in others for o in own], np.float64)
        self._energy = np.array([prices.energy * float(o.energy) for own in others for o in own])
        self._engine = np.array([o.engine for own in others for o in own], np.int64)
        self._first = np.cumsum([0, *(len(own) for own in others[:-1])]) if others else np.zeros(0, np.int64)
        self._prices = np.array(prices.engines) / sum(prices.engines)
        rows = np.array(engine_weights(prices), np.float64)
        self._rows: Floats = rows / rows.sum(1, keepdims=True)
        self._others = np.array([self._work(row) for row in self._rows])
        own = self._work(self._prices)
        self._frugal = self._work(np.zeros(engines))  # what the others cost in energy alone
        self._gaps: list[list[tuple[float, float]]] = []
        for engine in range(engines):
            cut = self._prices * (np.arange(engines) == engine)
            self._gaps.append(
                [(part * cut[engine], self._work(self._prices - part * cut)) for part in _CHEAPER]
            )
        self._begun = [_sums(chain, lambda o: self._prices[o[0]] * o[1] + o[2]) for chain in self._options]
        self._longest = [_sums(chain, lambda o: o[1] + o[2]) for chain in self._options]
        self._spent = [_sums(chain, lambda o: o[2]) for chain in self._options]
        self.least = own + sum(sums[-1] for sums in self._begun)
        kinds: dict[object, list[int]] = defaultdict(list)
        for chain, choices in enumerate(self._options):
            kinds[tuple(map(tuple, choices))].append(chain)
        self._equal = [np.array(equal) for equal in kinds.values() if len(equal) > 1]

    def bound(self, limit: float, ended: Callable[[], bool], labels: int = _LABELS) -> float | None:
        """What every schedule costs at least: the relaxation's optimum, or the limit if that is less.

        Nothing where the search is ended, or has more partial schedules of as many tasks than it may.

        Parameters
        ----------
        limit : schedules that cost more are not followed
        ended : whether to give up
        labels : partial schedules of as many tasks, at most
        """
        chains, engines = len(self._counts), self._engines
        # A label: when chains are ready, when engines are free, their loads, and energy at its price.
        layer: dict[tuple[int, ...], Floats] = {(0,) * chains: np.zeros((1, chains + 2 * engines + 1))}
        limit *= 1 + _SLACK
        for _ in range(sum(self._counts)):
            moved_to: dict[tuple[int, ...], list[Floats]] = defaultdict(list)
            for place, rows in layer.items():
                for after, moved in self._moves(place, rows):
                    moved = moved[self._within(after, moved, limit)]
                    if len(moved):
                        after, moved = self._in_order(after, moved)
                        moved_to[after].append(moved)
            if ended() or sum(len(part) for parts in moved_to.values() for part in parts) > 4 * labels:
                return None
            layer = {place: undominated(np.concatenate(parts)) for place, parts in moved_to.items()}
            if sum(map(len, layer.values())) > labels:
                return None
        costs = [self._cost(rows).min() for rows in layer.values()]
        return float(min([limit, *costs])) * (1 - 2 * _SLACK)

    def _moves(self, place: tuple[int, ...], rows: Floats) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """All labels with one task more."""
        chains = len(place)
        for chain in range(chains):
            if place[chain] == self._counts[chain]:
                continue
            after = (*place[:chain], place[chain] + 1, *place[chain + 1 :])
            open_ = [other for other in range(chains) if after[other] < self._counts[other]]
            for engine, cycles, energy in self._options[chain][place[chain]]:
                moved = rows.copy()
                free = chains + engine
                moved[:, chain] = np.maximum(rows[:, chain], rows[:, free]) + cycles
                moved[:, free] = moved[:, chain]
                moved[:, free + self._engines] += cycles
                moved[:, -1] += energy
                if open_:  # no task of theirs begins before one of them is ready
                    ready = moved[:, open_].min(1)[:, None]
                    frees = slice(chains, chains + self._engines)
                    moved[:, frees] = np.maximum(moved[:, frees], ready)
                yield after, moved

    def _within(self, place: tuple[int, ...], rows: Floats, limit: float) -> Bools:
        """Which labels may become schedules within the limit."""
        chains, engines = len(place), self._engines
        loads = rows[:, chains + engines : -1]
        left = self._left(place, self._begun)
        spent = loads @ self._prices + rows[:, -1] + sum(left)
        within: Bools = np.ones(len(rows), np.bool_)
        for engine, gaps in enumerate(self._gaps):
            # What an engine did not run up to now is other work, or lost at its price.
            gap = rows[:, chains + engine] - loads[:, engine]
            for price, work in gaps:
                within &= spent + work + price * gap <= limit
        energy = self._left(place, self._spent)
        for chain, rest in enumerate(self._left(place, self._longest)):
            others = self._frugal + sum(energy) - energy[chain]
            within &= rows[:, chain] + rows[:, -1] + rest + others <= limit
        return within

    def _left(self, place: tuple[int, ...], sums: Sequence[Sequence[float]]) -> list[float]:
        return [own[-1] - own[done] for own, done in zip(sums, place, strict=True)]

    def _in_order(self, place: tuple[int, ...], rows: Floats) -> tuple[tuple[int, ...], Floats]:
        """Equal chains exchanged so that the farthest comes first, then the one that is ready first."""
        placed = list(place)
        for equal in self._equal:
            order = sorted(equal, key=lambda chain: -place[chain])
            rows[:, equal] = rows[:, order]
            for chain, source in zip(equal, order, strict=True):
                placed[chain] = place[source]
            for _, group in groupby(equal, key=placed.__getitem__):
                level = list(group)
                rows[:, level] = np.sort(rows[:, level], 1)
        return tuple(placed), rows

    def _cost(self, rows: Floats) -> Floats:
        """What complete schedules of the chains cost, with the other work."""
        chains = len(self._counts)
        loads = rows[:, chains + self._engines : -1]
        cost: Floats = rows[:, :chains].max(1) + self._frugal
        for weights, work in zip(self._rows, self._others, strict=True):
            cost = np.maximum(cost, loads @ weights + work)
        return cost + rows[:, -1]

    def _work(self, weights: Floats) -> float:
        """The least that all other tasks cost by weights of engines."""
        if not len(self._first):
            return 0.0
        costs = weights[self._engine] * self._cycles + self._energy
        return float(np.minimum.reduceat(costs, self._first).sum())


def _sums(
    chain: Sequence[Sequence[tuple[int, int, float]]], cost: Callable[[tuple[int, int, float]], float]
) -> list[float]:
    """Least costs of a chain's first tasks, none to all."""
    sums = [0.0]
    for choices in chain:
        sums.append(sums[-1] + float(min(map(cost, choices))))
    return sums


def undominated(rows: Floats) -> Floats:
    """The rows of which no other one is at most as large in every column; of equal rows the first.

    Parameters
    ----------
    rows : shape (rows, columns)
    """
    rows = rows[np.argsort(rows.sum(1), kind="stable")]
    kept: list[Floats] = []
    while len(rows):
        block, rows = rows[:_BLOCK], rows[_BLOCK:]
        alone = np.ones(len(block), np.bool_)
        for place in range(len(block)):
            if alone[place]:
                alone[place + 1 :] &= ~(block[place] <= block[place + 1 :]).all(1)
        block = block[alone]
        kept.append(block)
        left = np.ones(len(rows), np.bool_)
        for row in block:
            left &= ~(row <= rows).all(1)
        rows = rows[left]
    return np.concatenate(kept)


def sequence_heavy_chains(
    search: ScheduleSearch, options: Sequence[tuple[Option, ...]], front: Front
) -> None:
    """Raise the bound by relaxations of the heaviest chains.

    Parameters
    ----------
    search : of a makespan or a product
    options : of every task
    front : what is known of energy and makespan; raised
    """
    left = search.limits.remaining
    end = math.inf if left is None else search.limits.elapsed + _PART * left
    relaxation = AssignmentRelaxation(search.problem.instance, options, search.limits)
    least = _least_cost(search, options, relaxation.prices_at(0.0), front.makespan, end)
    front.makespan = max(front.makespan, Fraction(math.ceil(least)))
    if search.problem.objective is ScheduleObjective.MAKESPAN:
        search.raise_bound(front.makespan, _SOURCE)
        return
    for _ in range(_PLANES):
        product, corner = front.least_product()
        search.raise_bound(product, _SOURCE)
        if not product or search.done or search.limits.elapsed >= end:
            return
        own = relaxation.prices_at(float(corner * corner / product))
        price = Fraction(own.energy)
        least = _least_cost(search, options, own, front.least_cost(price), end)
        front.add(price, Fraction(1), Fraction(least))
        if front.least_product()[0] <= product * (1 + _NOTABLE):
            return
    search.raise_bound(front.least_product()[0], _SOURCE)


def _least_cost(
    search: ScheduleSearch,
    options: Sequence[tuple[Option, ...]],
    prices: Prices,
    proven: Fraction,
    end: float,
) -> float:
    """The largest bound of makespan plus energy at its price that is proven; 0 where none is sought."""
    assert search.evaluation is not None
    known = float(search.evaluation.makespan + Fraction(prices.energy) * search.evaluation.energy)
    chains = heaviest_chains(search.problem.instance, options, prices)[:_CHAINS]
    weight = sum(min(map(prices.of, options[task])) for chain in chains for task in chain)
    best = 0.0
    if weight < _HEAVY * sum(min(map(prices.of, own)) for own in options):
        return best
    relaxation = ChainRelaxation(options, prices, chains)
    if relaxation.least * (1 + _NEAR) < proven:  # by paths; beside them all the chains' schedules are cheap
        return best
    limits = [min(known, float(proven) * (1 + step)) for step in _STEPS]
    for limit in (*limits, known):
        bound = relaxation.bound(limit, lambda: search.done or search.limits.elapsed >= end)
        if bound is None:
            break
        best = max(best, bound)
        if bound < limit * (1 - 3 * _SLACK) or limit == known:
            break
    return best
