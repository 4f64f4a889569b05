"""Plans of layouts: all layers' layouts chosen together for several prices of a cycle, then moved on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
from tilewright.heuristics.scheduling.tiled.coarsening import affordable
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged
from tilewright.heuristics.scheduling.tiled.layouts.choosing import SHARE, LayoutChoice, Layouts
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic, cycle_price
from tilewright.heuristics.scheduling.tiled.refining import Judged, losses
from tilewright.heuristics.scheduling.tiled.stages import Stages

TRIED = (1.0, 2.0, 1.4, 2.8, 0.7)
"""Multiples of the price of a cycle for which layouts are chosen."""

DEAR = 5.0
"""What a cycle is worth, as a multiple of the mean energy of one, where energy does not count: copies and
hops still do, for they fill links in ways that the estimated cycles leave out."""


PATIENCE = 24
"""Moves in a row without a gain after which the plan is smoothed on."""


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

    def redrawn(
        self, state: Layouts, units: Sequence[int], price: float, numbers: random.Random
    ) -> Layouts | None:
        """Other layouts of some layers; ``None`` where none of them changes.

        Parameters
        ----------
        state : the layouts of all layers
        units : the layers that change
        price : pJ that a cycle is worth
        numbers : what is drawn comes from these
        """
        return self.choice.redrawn(state, units, price, numbers)

    def planned(self, stages: Stages, state: Layouts, name: str, like: AtomicPlan) -> Judged | None:
        """The plan of some layouts; ``None`` where an atom fits no buffer.

        Parameters
        ----------
        stages : what makes plans
        state : layouts of all layers
        name : what the trace calls the plan
        like : as of `Stages.placed`
        """
        return planned(stages, state, name, like)


def planned(stages: Stages, layouts: Layouts, source: str, like: AtomicPlan | None = None) -> Judged | None:
    """The plan of layouts, smoothed once, offered; ``None`` where an atom fits no buffer.

    Parameters
    ----------
    stages : what makes plans
    layouts : of all layers
    source : what the trace calls the plan
    like : as of `Stages.placed`
    """
    try:
        dag, engine, step = arranged(stages.search.problem.problem, layouts, stages.search.limits)
    except InputError:
        return None
    return stages.placed(dag, step, engine, source, like)


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
    starts: list[LayoutStart] = []
    tried: set[Layouts] = set()
    for multiple in TRIED:
        if starts and within is not None and within.expired:
            break
        layouts = choice.best(price * multiple)
        if search.done or layouts in tried:
            continue
        tried.add(layouts)
        try:
            judged = planned(stages, layouts, f"{stages.name} at {price * multiple:.3g} pJ")
        except LimitReachedError:
            if not starts:
                raise
            break
        if judged is not None:
            starts.append(LayoutStart(judged, layouts, choice))
    return sorted(starts, key=lambda start: start.judged[0])


def price_of(search: TiledSearch) -> float:
    """pJ that a cycle is worth in the best plan; a few mean energies of one where energy does not count."""
    price = cycle_price(search)
    if price < inf or search.evaluation is None:
        return price
    return DEAR * search.evaluation.energy.total / max(1, search.evaluation.cycles)


@dataclass(frozen=True)
class LayoutPlans(PlanHeuristic):
    """Layouts of all layers chosen together, then those moved that lose most."""

    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    moves: int = option(4000, "moves of the climb at most", low=0, high=10**7)

    name = "layouts"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Choose, plan, then change the layouts of layers that lose most."""
        stages = Stages(search, self.name)
        starts = started(search, stages, self.room)
        if not starts:
            return
        start = starts[0]
        problem = search.problem.problem
        numbers = random.Random(search.limits.seed)
        state, base = start.state, stages.settled(start.judged)
        weights, failed = losses(problem, base[1]), 0
        for _ in range(self.moves):
            if search.done:
                break
            unit = numbers.choices(range(len(weights)), weights)[0]
            moved = start.redrawn(state, [unit], price_of(search), numbers)
            if moved is None:
                continue
            judged = start.planned(stages, moved, f"{self.name} climbing", base[1])
            failed += 1
            if judged is not None and judged[0] <= base[0]:
                failed = failed if judged[0] == base[0] else 0
                state, base = moved, judged
                weights = losses(problem, base[1])
            elif failed >= PATIENCE:
                failed, base = 0, stages.settled(base, seed=numbers.randrange(1 << 30))
