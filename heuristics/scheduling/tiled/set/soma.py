"""SoMa (Cai et al., HPCA 2025), SET's successor, as the method ``soma``: annealing in two stages.

The first stage decides order of layers, groups that stay on chip, and how many tiles each group is cut into, while
data are loaded by a fixed rule.  These are SET's trees of T cuts, so that SET's annealing is this stage here.  The
second stage keeps order and places, and anneals the transfers: when each block is loaded and each result stored, from
where, and how long each block stays (`Movements`).  With a plan to begin with, its order stands and the second stage
is all there is.

The paper's DRAM serves a list of transfers, each as long as it takes.  Plans here have steps, over which a transfer is
spread evenly, so that the order of transfers is that of their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.movements import Movements, movements_of
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling
from tilewright.heuristics.scheduling.tiled.set.methods import AnnealedTrees

FIRST_STAGE = 0.5
"""Part of the time that the first stage may take."""

AHEAD = (1, 4)
"""Steps by which data may come early, of the plans to begin with besides the given one."""


@dataclass(frozen=True)
class TwoStages(PlanHeuristic):
    """Order and groups by SET's annealing, then transfers and residencies of that order by annealing."""

    moves: int = option(1_000_000, "changes of transfers and residencies, at most", low=0, high=10**9)
    spread: int = option(16, "steps that a transfer may be spread over", low=1, high=4096)
    heat: float = option(0.003, "temperature at first, relative change of the objective", low=0.0, high=10.0)
    cooling: float = option(8.0, "speed of cooling", low=0.0, high=1000.0)

    name = "soma"
    stochastic = True
    on_trees: ClassVar = True
    """Whether the machine code of trees is needed in addition to that of plans."""

    def offer(self, search: TiledSearch) -> None:
        """Both stages."""
        AnnealedTrees().offer(search.within(search.limits.share(FIRST_STAGE)))
        if search.answer is not None:
            self._second(search, search.answer)

    def solve_from(self, search: TiledSearch, given: AtomicPlan) -> Outcome:
        """The second stage alone, for order and places of a plan.

        Parameters
        ----------
        search : whose problem the plan is of
        given : a legal plan
        """
        search.confirm(given, "warm start", Origin.HEURISTIC)
        self._second(search, given)
        return Outcome()

    def _second(self, search: TiledSearch, given: AtomicPlan) -> None:
        """Anneal the transfers of an order; better plans are offered on the way."""
        problem, dag = search.problem.problem, given.dag

        def value(movements: Movements) -> float | None:
            """The objective's key; ``None`` for movements that are no legal plan."""
            nonlocal plan
            plan = movements.plan()
            if plan is None:
                return None
            try:
                judged = problem.evaluate(dag, plan)
            except IllegalPlanError:
                return None
            return float(search.problem.key(judged.energy.total, judged.cycles))

        def better(found: float) -> None:
            if plan is not None and (search.key is None or found < float(search.key)):
                search.offer(AtomicPlan(dag, plan), self.name, Origin.HEURISTIC)

        plan: Plan | None = None
        begun: tuple[float, Movements] | None = None
        quick = (complete(dag, problem.machine, given.plan.engine, given.plan.first, ahead=a) for a in AHEAD)
        for known in (given.plan, *(other for other in quick if (other.first == given.plan.first).all())):
            movements = movements_of(dag, problem.machine, known, self.spread)
            cost = None if movements is None else value(movements)
            if movements is not None and cost is not None and (begun is None or cost < begun[0]):
                begun = cost, movements
                better(cost)
        if begun is not None:
            cooling = Cooling(self.heat, self.cooling)
            self._annealed(search, begun, cooling, value, better)

    def _annealed(
        self,
        search: TiledSearch,
        begun: tuple[float, Movements],
        cooling: Cooling,
        value: Callable[[Movements], float | None],
        better: Callable[[float], None],
    ) -> None:
        """Change one decision after the other, and keep what is better or, while it is hot, a little worse.

        Parameters
        ----------
        search : says when to stop, and has the seed
        begun : value and movements to begin with
        cooling : temperatures and number of changes
        value : of movements, ``None`` where they are not legal
        better : called with each value below all before it, right after that was computed
        """
        limits, random = search.limits, Random(search.limits.seed)
        (cost, now), least = begun, begun[0]
        clock, left = limits.elapsed, limits.remaining
        for number in range(self.moves):
            if search.done:
                break
            passed = number / self.moves
            if left and not limits.deterministic:
                passed = max(passed, min(1.0, (limits.elapsed - clock) / left))
            made = now.neighbour(random)
            found = None if made is None else value(made)
            if made is None or found is None or not cooling.accepts(found, cost, passed, random):
                continue
            now, cost = made, found
            if cost < least:
                least = cost
                better(cost)
