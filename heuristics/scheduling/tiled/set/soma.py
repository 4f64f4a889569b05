"""SoMa (Cai et al., HPCA 2025), SET's successor, as the method ``soma``: annealing in two stages.

The first stage decides the order of layers, groups that stay on chip, and how many tiles each group is cut
into, while data are loaded by a fixed rule.  These are SET's trees of T cuts, so that SET's annealing is this
stage here.  The second stage keeps order and places, and anneals the transfers: when each block is loaded and
each result stored, from where, and how long each block stays (`Movements`).  Where a plan to begin with is
given its order stands, and the second stage is all there is.

The paper's DRAM serves a list of transfers, each as long as it takes.  Plans here have steps, over which a
transfer is spread evenly, so that the order of transfers is that of their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.movements import Movements, movements_of
from tilewright.heuristics.scheduling.tiled.planning import Heuristic, quiet_end
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling
from tilewright.heuristics.scheduling.tiled.set.methods import AnnealedTrees

FIRST_STAGE = 0.5
"""Part of the time that the first stage may take."""

AHEAD = (1, 4)
"""Steps by which data may come early, of the plans to begin with besides the given one."""

UNTIMED = 16
"""Changes between two looks at the clock, which may take longer than a change."""

Change = Callable[[Movements, Random], Movements | None]
"""Movements with something changed at random; ``None`` where nothing changes."""


@dataclass(frozen=True)
class TwoStages(Heuristic):
    """Order and groups by SET's annealing, then transfers and residencies of that order by annealing."""

    moves: int = option(1_000_000, "changes of transfers and residencies, at most", low=0, high=10**9)
    spread: int = option(16, "steps that a transfer may be spread over", low=1, high=4096)
    heat: float = option(0.003, "temperature at first, relative change of the objective", low=0.0, high=10.0)
    cooling: float = option(8.0, "speed of cooling", low=0.0, high=1000.0)

    name = "soma"
    stochastic = True
    on_trees: ClassVar = True
    """Whether the machine code of trees is needed in addition to that of plans."""

    def solve(self, search: TiledSearch) -> Outcome:
        """Both stages; the message is that of the first, which may take all of the time to a first plan."""
        try:
            outcome = AnnealedTrees().solve(search.within(search.limits.share(FIRST_STAGE)))
        except LimitReachedError:
            outcome = AnnealedTrees().solve(search)
        if search.answer is not None:
            self.anneal(search, search.answer)
        return outcome

    def solve_from(self, search: TiledSearch, given: AtomicPlan) -> Outcome:
        """The second stage alone, for order and places of a plan.

        Parameters
        ----------
        search : whose problem the plan is of
        given : a legal plan
        """
        search.confirm(given, "warm start", Origin.HEURISTIC)
        self.anneal(search, given)
        return Outcome()

    def anneal(
        self, search: TiledSearch, given: AtomicPlan, change: Change = Movements.neighbour, source: str = name
    ) -> None:
        """Anneal the transfers of a plan's order; better plans are offered on the way.

        Parameters
        ----------
        search : takes the plans
        given : a legal plan
        change : draws a change of movements; it may change their order, too
        source : what the trace calls better plans
        """
        machine, dag, plan, known = search.problem.problem.machine, given.dag, given.plan, [given.plan]
        with quiet_end(search):
            for ahead in AHEAD:
                other = complete(dag, machine, plan.engine, plan.first, ahead=ahead, limits=search.limits)
                if (other.first == plan.first).all():
                    known.append(other)
        starts = (movements_of(dag, machine, other, self.spread) for other in known if not search.done)
        begun = [judged for start in starts if start and (judged := _judged(search, start))]
        if not begun:
            return
        here = least = min(begun, key=lambda judged: judged.value)
        _offer(search, dag, here, source)
        cooling, random, limits = Cooling(self.heat, self.cooling), Random(search.limits.seed), search.limits
        clock, left, passed = limits.elapsed, limits.remaining, 0.0
        for number in range(self.moves):
            if number % UNTIMED == 0:
                if search.done:
                    break
                passed = number / self.moves
                if left and not limits.deterministic:
                    passed = max(passed, min(1.0, (limits.elapsed - clock) / left))
            made = change(here.movements, random)
            there = made and _judged(search, made)
            if there and cooling.accepts(there.value, here.value, passed, random):
                here = there
                if here.value < least.value:
                    least = here
                    _offer(search, dag, here, source)


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Movements, and the key of the plan that they are."""

    movements: Movements
    value: float


def _judged(search: TiledSearch, movements: Movements) -> _Judged | None:
    """What movements cost; ``None`` for those that are no legal plan."""
    cost = movements.cost()
    return None if cost is None else _Judged(movements, float(search.problem.key(*cost)))


def _offer(search: TiledSearch, dag: AtomicDag, judged: _Judged, source: str) -> None:
    """Offer a plan that is better than the best."""
    if search.key is None or judged.value < float(search.key):
        plan = judged.movements.plan()
        if plan is not None:
            search.offer(AtomicPlan(dag, plan), source, Origin.HEURISTIC)
