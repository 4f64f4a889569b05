"""Better round plans of few atoms: order, places and transfers are annealed together, or transfers alone.

A change of order or places keeps all transfers that the new plan has in their steps, so that a plan whose
transfers are packed well is not packed anew; some changes of transfers settle it before it is judged, since
most orders are worth more than what the transfers of another one leave them.  A better plan to begin with
leaves fewer and shorter rounds to the statements.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.movements import Movements, carried
from tilewright.heuristics.scheduling.tiled.set.soma import TwoStages
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.solvers.scheduling.tiled.exact import effort

Key = Callable[[float, int], Fraction]


def single_steps(dag: AtomicDag, machine: TiledMachine, plan: Plan, seed: int = 0) -> Plan:
    """A round plan with its transfers moved to other sources and other single steps.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    plan : a round plan
    seed : of the moves
    """
    return smoothed(dag, machine, plan, rounds=8, tries=16, most=32, widths=1, seed=seed)


def moved(engine: Int32s, step: Int32s, engines: int, random_numbers: Random) -> tuple[Int32s, Int32s] | None:
    """One atom in another place or round, alone or in exchange with another; ``None`` where nothing moves.

    What the atoms read is not looked at.

    Parameters
    ----------
    step : even numbers, so that a round of its own fits between any two
    """
    task = random_numbers.randrange(len(engine))
    to_engine = random_numbers.randrange(engines)
    rounds = int(step.max()) // 2 + 1
    near = int(step[task]) // 2 + random_numbers.choice((-2, -1, 0, 0, 0, 1, 2))
    to_step = 2 * near + (random_numbers.random() < 0.1)
    if (to_engine == engine[task] and to_step == step[task]) or not -1 <= near <= rounds:
        return None
    other = np.flatnonzero((engine == to_engine) & (step == to_step))
    new_engine, new_step = engine.copy(), step.copy()
    new_engine[other], new_step[other] = engine[task], step[task]
    new_engine[task], new_step[task] = to_engine, to_step
    return new_engine, new_step


def settled(movements: Movements, random_numbers: Random, key: Key) -> Movements | None:
    """The same order after some changes of its transfers, of which those stay that cost no more.

    Parameters
    ----------
    movements : of a round plan; ``None`` is the answer where it is not legal
    random_numbers : the only source of chance
    key : what an energy in pJ and a number of cycles are worth
    """
    cost = movements.cost()
    if cost is None:
        return None
    least = key(*cost)
    for _ in range(effort.REPAIRS):
        other = movements.neighbour(random_numbers)
        cost = None if other is None else other.cost()
        if other is not None and cost is not None and (value := key(*cost)) <= least:
            movements, least = other, value
    return movements


def changed(movements: Movements, random_numbers: Random, key: Key) -> Movements | None:
    """One transfer changed, or one atom moved and the transfers settled to that.

    Parameters
    ----------
    movements : of a round plan; ``None`` is the answer where nothing changes, or order or buffers forbid it
    random_numbers : the only source of chance
    key : what an energy in pJ and a number of cycles are worth
    """
    if random_numbers.random() >= effort.ORDERS:
        return movements.neighbour(random_numbers)
    uses, order = movements.uses, movements.uses.order
    move = moved(order.engine, 2 * order.first, uses.machine.engines, random_numbers)
    if move is None:
        return None
    engine, even = move
    rounds, step = np.unique(even, return_inverse=True)
    with suppress(IllegalPlanError):
        plan = complete(uses.dag, uses.machine, engine, step.astype(np.int32), ahead=1)
        if (plan.first == step).all():
            other = carried(movements, plan, np.searchsorted(rounds, 2 * np.arange(uses.steps)))
            return None if other is None else settled(other, random_numbers, key)
    return None


def annealed_together(search: TiledSearch, given: AtomicPlan, share: float, turn: int, trials: int) -> None:
    """Offer round plans with order, places and transfers annealed together from those of a plan.

    Parameters
    ----------
    search : takes the plans
    given : a legal round plan
    share : part of the time left that this may take
    turn : which annealing of the search it is; each draws other changes
    trials : per atom, at most
    """
    limits = search.limits.share(share)
    within = search.within(replace(limits, seed=limits.seed + turn))
    moves = trials * given.dag.tasks
    method = TwoStages(moves=moves, spread=1, heat=effort.HEAT)
    method.anneal(within, given, partial(changed, key=search.problem.key), "annealing")


def annealed(search: TiledSearch, given: AtomicPlan, share: float) -> None:
    """Offer round plans of a plan's order and places, with annealed transfers and residencies.

    Parameters
    ----------
    search : takes the plans
    given : a legal plan
    share : part of the time left that this may take
    """
    changes = effort.CHANGES * len(given.plan.transfers) ** 2
    TwoStages(moves=changes, spread=1).anneal(search.within(search.limits.share(share)), given)
