"""Better round plans of few atoms: order and places change, then routing and smoothing; or transfers alone.

A trial takes milliseconds on atoms few enough to be proven, and a better plan to begin with leaves fewer and
shorter rounds to the statements.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.arrays import Int32s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.set.soma import TwoStages
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.solvers.scheduling.tiled.exact.space import as_round_plan

LATE = 30
"""Trials ago."""

CHANGES = 2
"""Changes that an annealing makes per pair of transfers."""


def single_steps(dag: AtomicDag, machine: TiledMachine, plan: Plan, seed: int = 0) -> Plan:
    """A round plan with its transfers moved to other sources and other single steps.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    plan : a round plan
    seed : of the moves
    """
    return smoothed(dag, machine, plan, rounds=8, tries=16, most=32, widths=1, seed=seed)


def moved(
    engine: Int32s, step: Int32s, engines: int, random_numbers: random.Random
) -> tuple[Int32s, Int32s] | None:
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


def climb(
    dag: AtomicDag,
    machine: TiledMachine,
    plan: Plan,
    judge: Callable[[Plan], float | None],
    done: Callable[[], bool],
    random_numbers: random.Random,
    most: int,
) -> None:
    """Judge one round plan after the other, each close to one that was kept.

    A plan is kept that is no longer than the one before it, or than the one kept some trials ago (late
    acceptance), so that the climb leaves hills that are low.

    Parameters
    ----------
    plan : to begin with
    judge : cycles of a plan, ``None`` for one that does not count; it keeps the best
    done : whether to stop
    most : trials
    """
    here = judge(plan)
    if here is None:
        return
    kept = [here] * LATE
    engine, step = plan.engine, _even(plan.first)
    for turn in range(most):
        if done():
            return
        move = moved(engine, step, machine.engines, random_numbers)
        if move is None:
            continue
        try:
            trial = as_round_plan(dag, complete(dag, machine, *move, ahead=1), machine.engines)
        except IllegalPlanError:
            continue
        judged = judge(single_steps(dag, machine, trial, random_numbers.randrange(1 << 30)))
        if judged is not None and judged <= max(here, kept[turn % LATE]):
            engine, step, here = move[0], _even(move[1]), judged
        kept[turn % LATE] = here


def annealed(search: TiledSearch, given: AtomicPlan, share: float) -> None:
    """Offer round plans of a plan's order and places, with annealed transfers and residencies.

    Parameters
    ----------
    search : takes the plans
    given : a legal plan
    share : part of the time left that this may take
    """
    changes = CHANGES * len(given.plan.transfers) ** 2
    TwoStages(moves=changes, spread=1).anneal(search.within(search.limits.share(share)), given)


def _even(step: Int32s) -> Int32s:
    """Steps in the same order, numbered 0, 2, 4 …"""
    return (2 * np.unique(step, return_inverse=True)[1]).astype(np.int32)
