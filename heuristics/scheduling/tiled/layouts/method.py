"""Plans of layouts: all layers' layouts chosen together for several prices of a cycle, then moved on."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
from tilewright.heuristics.scheduling.tiled.coarsening import affordable
from tilewright.heuristics.scheduling.tiled.layouts.arranging import planned
from tilewright.heuristics.scheduling.tiled.layouts.beside import Besides
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layouts
from tilewright.heuristics.scheduling.tiled.layouts.choosing import SHARE, LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.stretches import Stretches
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic, price_of
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages

TRIED = (
    (1.0, "apart"),
    (1.0, "network"),
    (1.0, "waiting"),
    (1.0, "beside"),
    (2.0, "best"),
    (1.4, "best"),
    (2.8, "best"),
    (0.7, "best"),
    (1.0, "beside"),
    (2.8, "rings"),
    (1.0, "rings"),
)
"""Multiples of the price of a cycle for which layouts are chosen, and how: with layers apart from their
readers, in the network's order, and as the choice behind the best plan so far, or as that would be if no
results arrived while others are made, or without the wariness of rings; or those of this plan, with layers
beside others."""

PATIENCE = 8
"""Moves in a row without a gain after which the plan is smoothed on."""

MOVES = 4000
"""Moves of a climb at most."""

CLIMB = 0.5
"""Part of the time left in which plans are smoothed once, before the best one is smoothed for long."""

SMOOTHING = 1
"""Calls that smooth a plan of other layouts further, before it is compared with one that was for long."""


@dataclass(frozen=True, eq=False)
class LayoutStart:
    """A plan of layouts, and what other ones may be chosen.

    Parameters
    ----------
    judged : the plan
    state : its layouts
    choice : of all layers
    """

    judged: Judged
    state: Layouts
    choice: LayoutChoice

    @property
    def wary(self) -> bool:
        """Whether engines that share sums were estimated to take longer."""
        return self.choice.wary_of_rings

    def beside(self, price: float) -> Layouts:
        """Its layouts, with layers beside others where that is estimated to gain at a price of a cycle."""
        return Besides(self.choice).placed(self.state, price)

    def climbed(
        self, stages: Stages, numbers: random.Random, within: Limits, most: int = MOVES
    ) -> LayoutStart:
        """A better start, see `Stretches.climb`.

        Plans that are smoothed once are compared with each other alone: one that was smoothed for long beats
        most of those near it that were not, whatever their layouts are worth.

        Parameters
        ----------
        stages : what makes plans
        numbers : what is drawn comes from these
        within : limits after which no plan is tried
        most : plans that are tried at most
        """
        stretches = Stretches(self.choice, self.state, numbers)
        state, judged = stretches.climb(stages, self.judged, f"{stages.name} climbing", within, most)
        return LayoutStart(judged, state, self.choice)


def started(
    search: TiledSearch, stages: Stages, room: float, most: int | None = None, within: Limits | None = None
) -> list[LayoutStart]:
    """Plans of the layouts chosen for several prices, or for those before a limit struck, the best first.

    Parameters
    ----------
    search : what judges plans
    stages : what makes them
    room : part of the buffer that an atom may need
    most : atoms; by default as many as the time of the search allows
    within : limits after which only a first plan is begun; by default those of the search.  Where they are
        given, none is begun that is expected not to end

    Raises
    ------
    InputError : for a layer of which no share fits a buffer
    LimitReachedError : where limits strike before any
    """
    problem = search.problem.problem
    if search.answer is None:
        LayerSequential(room=room).offer(search, f"{stages.name}, layers in turn")
    price = price_of(search)
    count = problem.machine.engines * len(problem.units) * problem.batch
    atoms = affordable(search.limits) if most is None else most
    share = max(1, min(SHARE, atoms // count))
    choice = LayoutChoice(
        problem, price, room=room, most=share, limits=search.limits, hasty=within is not None
    )
    choice = choice.wary()
    starts: list[LayoutStart] = []
    tried: set[tuple[Layouts, tuple[int, ...]]] = set()
    best = choice
    leading: LayoutStart | None = None
    for multiple, how in TRIED:
        if starts and within is not None and within.expired:
            break
        try:
            if how == "apart":
                taken = choice.apart()
            elif how == "waiting":
                taken = best.waiting()
            elif how == "rings":
                taken = best.wary(of_rings=False)
            else:
                taken = choice if how == "network" else best
            if how == "beside" and leading is not None:
                layouts = leading.beside(price * multiple)
            else:
                layouts = taken.best(price * multiple)
            if search.done or (layouts, taken.order) in tried:
                continue
            tried.add((layouts, taken.order))
            source = f"{stages.name} at {price * multiple:.3g} pJ"
            judged = planned(stages, layouts, source, order=taken.order)
        except LimitReachedError:
            if not starts:
                raise
            break
        if judged is not None:
            starts.append(LayoutStart(judged, layouts, taken))
            leading = min(starts, key=lambda start: start.judged[0])
            best = leading.choice
    return sorted(starts, key=lambda start: start.judged[0])


@dataclass(frozen=True)
class LayoutPlans(PlanHeuristic):
    """Layouts of all layers chosen together, then those moved that lose most."""

    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    moves: int = option(MOVES, "moves of each climb at most", low=0, high=10**7)

    name = "layouts"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Choose, plan, then change the layouts of layers that lose most."""
        stages = Stages(search, self.name)
        starts = started(search, stages, self.room)
        if not starts:
            return
        limits = search.limits
        numbers = random.Random(limits.seed)
        start = starts[0].climbed(stages, numbers, limits.share(CLIMB), self.moves)
        stretches = Stretches(start.choice, start.state, numbers, SMOOTHING)
        state, base = start.state, stages.settled(start.judged)
        failed = 0
        for _ in range(self.moves):
            if search.done:
                break
            moved = stretches.visit(stages, state, base, f"{self.name} moves")
            failed += 1
            if moved is not None:
                failed, (state, base) = 0, moved
            elif failed >= PATIENCE:
                failed, base = 0, stages.settled(base, seed=numbers.randrange(1 << 30))
