"""Better sizes of atoms with the evaluator inside: hill climbing from any sizes.

Atom sizes decide more than order and places do.  A move gives one layer, or all layers of the same shape,
one of the sizes that its own estimate likes, and stays if the whole plan is not worse.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf

import numpy as np

from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_size_list

MOST_SIZES = 8
"""Sizes per layer and kind of estimate that moves try."""

SHARES = (1, 2)
"""Parts of the machine that the estimates give a layer."""

HANDOVERS = (24, 48, 96, 12)
"""Cycles between rounds that estimates count: fine atoms suit wide links, coarse ones narrow links; the
finest last, whose plans take longest to make."""

Sizes = tuple[AtomSize, ...]
Judged = tuple[Fraction, AtomicPlan]
"""Key and plan that some sizes lead to."""


class SizeMoves:
    """Moves in the sizes of atoms.

    Parameters
    ----------
    room : part of the buffer that an atom may need
    engines : that take part; by default all
    prices : pJ that a cycle is worth, by each of which sizes are ranked
    """

    def __init__(
        self,
        problem: TiledProblem,
        *,
        room: float = 0.5,
        engines: int | None = None,
        prices: Sequence[float] = (inf,),
    ) -> None:
        self._problem = problem
        self._room = room
        self._engines = problem.machine.engines if engines is None else engines
        self._prices = prices
        self._menus: dict[int, list[AtomSize]] = {}
        alike: dict[object, list[int]] = {}
        for i, unit in enumerate(problem.units):
            alike.setdefault((unit.layer.operator, len(unit.reads)), []).append(i)
        self._alike = {i: same for same in alike.values() for i in same}

    def menu(self, unit: int) -> list[AtomSize]:
        """Sizes that a layer may be given, those liked best for all engines first."""
        first = self._alike[unit][0]
        if first not in self._menus:
            menu: dict[AtomSize, None] = {}
            lists = [
                balanced_size_list(
                    self._problem,
                    self._problem.units[first],
                    max(1, self._engines // share),
                    room=room,
                    most=MOST_SIZES,
                    handover=handover,
                    price=price,
                )
                for share in SHARES
                for room in (self._room, 1.0)
                for price in self._prices
                for handover in (HANDOVERS if price == inf else HANDOVERS[:1])
            ]
            for rank in range(MOST_SIZES):
                menu.update(dict.fromkeys(listed[rank] for listed in lists if rank < len(listed)))
            self._menus[first] = list(menu)
        return self._menus[first]

    def moved(self, sizes: Sizes, weights: Sequence[float], random_numbers: random.Random) -> Sizes | None:
        """Sizes after one move; ``None`` where the layer that was drawn has no other size.

        Parameters
        ----------
        weights : per layer, how likely it is drawn
        """
        unit = random_numbers.choices(range(len(sizes)), weights)[0]
        return self.redrawn(sizes, [unit], random_numbers)

    def redrawn(self, sizes: Sizes, units: Sequence[int], random_numbers: random.Random) -> Sizes | None:
        """Sizes with some layers', or those of all layers like them, drawn anew, well-liked ones more often.

        ``None`` where none of them has another size.
        """
        changed = list(sizes)
        alike = random_numbers.random() < 0.5
        for unit in units:
            menu = [option for option in self.menu(unit) if option != sizes[unit]]
            if menu:
                size = menu[int(len(menu) * random_numbers.random() ** 3)]
                for i in self._alike[unit] if alike else [unit]:
                    changed[i] = size
        return tuple(changed) if tuple(changed) != sizes else None


def climb(
    problem: TiledProblem,
    start: Sizes,
    begun: Judged,
    moves: SizeMoves,
    judge: Callable[[Sizes], Judged | None],
    done: Callable[[], bool],
    random_numbers: random.Random,
    *,
    most: int | None = None,
    kept: Callable[[Judged], object] = lambda judged: None,
) -> Sizes:
    """Climb until ``done``; returns the best sizes.

    Parameters
    ----------
    begun : what the first sizes lead to
    moves : sizes that layers may be given
    judge : what sizes lead to; ``None`` where their atoms fit no buffer
    done : whether to stop
    most : moves at most; ``None`` for no limit
    kept : called with every plan better than all before
    """
    sizes, best = start, begun
    weights = losses(problem, best[1])
    tried = 0
    while not done() and (most is None or tried < most):
        tried += 1
        moved = moves.moved(sizes, weights, random_numbers)
        rating = None if moved is None else judge(moved)
        if moved is not None and rating is not None and rating[0] <= best[0]:
            if rating[0] < best[0]:
                kept(rating)
            sizes, best = moved, rating
            weights = losses(problem, best[1])
    return sizes


def losses(problem: TiledProblem, answer: AtomicPlan) -> list[float]:
    """Per layer what it loses of the objective, and a little for every layer: what draws a move.

    Of cycles these are the cycles of its steps beyond its work over all engines, of energy the bytes that its
    atoms are sent, each as a part of the plan's.
    """
    dag, plan, objective = answer.dag, answer.plan, problem.objective
    units = len(dag.units)
    lost = np.full(units, 0.1 / units)
    if objective.delay_power:
        result = problem.evaluate(dag, plan)
        length = np.diff(np.append(result.step_start[: plan.steps], result.cycles))
        busy = np.bincount(plan.first, minlength=plan.steps)
        taken = np.bincount(dag.unit, weights=(length / np.maximum(busy, 1))[plan.first], minlength=units)
        work = np.bincount(dag.unit, weights=dag.cycles.astype(np.float64), minlength=units)
        beyond = np.maximum(0.0, taken - work / problem.machine.engines) / result.cycles
        lost += float(objective.delay_power) * beyond
    if objective.energy_power and len(plan.transfers.bytes):
        reader = np.zeros(dag.blocks, dtype=np.int64)
        reader[dag.reads] = np.repeat(dag.unit, np.diff(dag.read_starts))
        moved = plan.transfers
        sent = np.bincount(reader[moved.block], weights=moved.bytes.astype(np.float64), minlength=units)
        lost += float(objective.energy_power) * 0.5 * sent / max(1.0, float(sent.sum()))
    weights: list[float] = lost.tolist()
    return weights
