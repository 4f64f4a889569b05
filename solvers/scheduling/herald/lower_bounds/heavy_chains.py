"""Bounds from the heaviest chains alone, by exact search: all that they can become beside other work.

The heaviest path of each of some runs is sequenced on the engines; all other tasks are work that is done in
parts at any time.  Where the chains are all tasks, their optimum is that of the problem but for fetches,
context changes and memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import AssignmentRelaxation
from tilewright.solvers.scheduling.herald.lower_bounds.chain_labels import ChainRelaxation
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.insertion import inserted
from tilewright.solvers.scheduling.herald.walks.prices import Prices, even_prices

_FEWEST, _MOST = 2, 6  # chains that are sequenced: with each more there are many times as many labels
_ALL = 3  # runs that are sequenced at once, if each is a chain
_HEAVY = 0.25  # of the work, that the first ones must be
_NEAR = 0.003  # by which the least cost may be less than what is proven, for other work to count
_STEPS = tuple(0.0005 * 2**power for power in range(11))  # above what is proven, to be followed
_PLANES = 6  # half-planes for a product
_PART, _MOST_PART = 0.1, 0.5  # of the time that is left; where all runs are sequenced at once
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


def sequence_heavy_chains(
    search: ScheduleSearch, options: Sequence[tuple[Option, ...]], front: Front, annealing: ScheduleAnnealing
) -> None:
    """Raise the bound by relaxations of the heaviest chains; where these are all tasks, make their schedule.

    Parameters
    ----------
    search : of a makespan or a product
    options : of every task
    front : what is known of energy and makespan; raised
    annealing : what makes schedules
    """
    chains = _HeavyChains(search, options, annealing)
    relaxation = AssignmentRelaxation(search.problem.instance, options, search.limits)
    least = chains.least_cost(relaxation.prices_at(0.0), front.makespan)
    front.makespan = max(front.makespan, Fraction(math.ceil(least)))
    if search.problem.objective is ScheduleObjective.MAKESPAN:
        search.raise_bound(front.makespan, _SOURCE)
        return
    for _ in range(_PLANES):
        product, corner = front.least_product()
        search.raise_bound(product, _SOURCE)
        if not product or chains.ended:
            return
        own = relaxation.prices_at(float(corner * corner / product))
        price = Fraction(own.energy)
        least = chains.least_cost(own, front.least_cost(price))
        front.add(price, Fraction(1), Fraction(least))
        if front.least_product()[0] <= product * (1 + _NOTABLE):
            return
    search.raise_bound(front.least_product()[0], _SOURCE)


class _HeavyChains:
    """Relaxations of ever more of the heaviest chains, until they have too many labels or time is over.

    Parameters
    ----------
    search : of a makespan or a product
    options : of every task
    annealing : what makes schedules
    """

    def __init__(
        self, search: ScheduleSearch, options: Sequence[tuple[Option, ...]], annealing: ScheduleAnnealing
    ) -> None:
        self._search, self._options, self._annealing = search, options, annealing
        chains = heaviest_chains(search.problem.instance, options, even_prices(search.problem.instance))
        whole = len(chains) <= _ALL and sum(map(len, chains)) == len(options)
        self._fewest = _ALL if whole else _FEWEST
        left = search.limits.remaining
        part = _MOST_PART if whole else _PART
        self._end = math.inf if left is None else search.limits.elapsed + part * left

    @property
    def ended(self) -> bool:
        return self._search.done or self._search.limits.elapsed >= self._end

    def least_cost(self, prices: Prices, proven: Fraction) -> float:
        """The largest bound of makespan plus energy at its price that is proven; 0 where none is.

        Parameters
        ----------
        prices : what engines and energy are worth
        proven : a bound that is known
        """
        chains = heaviest_chains(self._search.problem.instance, self._options, prices)
        weights = [sum(min(map(prices.of, self._options[task])) for task in chain) for chain in chains]
        if sum(weights[: self._fewest]) < _HEAVY * sum(min(map(prices.of, own)) for own in self._options):
            return 0.0
        best = 0.0
        for count in range(min(self._fewest, len(chains)), min(_MOST, len(chains)) + 1):
            relaxation = ChainRelaxation(self._options, prices, chains[:count])
            if relaxation.least * (1 + _NEAR) < proven:  # by paths, beside which there is time for other work
                relaxation = ChainRelaxation(self._options, prices, chains[:count], beside=False)
            bound = self._least_of(relaxation, prices, max(best, float(proven)))
            if bound is None:
                break
            best = max(best, bound)
        return best

    def _least_of(self, relaxation: ChainRelaxation, prices: Prices, proven: float) -> float | None:
        """The largest bound that a relaxation proves; nothing where it has too many labels for any."""
        evaluation = self._search.evaluation
        assert evaluation is not None
        known = float(evaluation.makespan + Fraction(prices.energy) * evaluation.energy)
        best = None
        for step in (*_STEPS, math.inf):
            limit = min(known, proven * (1 + step))
            relaxed = relaxation.bound(limit, lambda: self.ended)
            if relaxed is None:
                break
            best = relaxed.cost
            placed = (
                inserted(self._search.problem.instance, self._options, relaxed.taken) if relaxed.taken else ()
            )
            if placed:
                lines = self._annealing.lines_in_turn(placed)
                self._search.confirm(self._annealing.schedule_of(lines), _SOURCE)
            if relaxed.taken or limit == known:
                break
        return best
