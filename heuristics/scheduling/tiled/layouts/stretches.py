"""Stretches: runs of layers that are given other layouts together, many of them in one plan.

Layers of a plan of layouts run in turn, so that what a change costs or spares lies in the steps and the
transfers of its own layers and of those beside them.  One plan therefore tries a dozen changes far from each
other: every stretch is judged by what its layers, and some beside them, take in the new plan and in the old
one.  Those that gained are kept.  The evaluator judges all plans.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Floats
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts, layers_beside, more_taken
from tilewright.heuristics.scheduling.tiled.layouts.arranging import planned
from tilewright.heuristics.scheduling.tiled.layouts.beside import Besides, followers
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layouts
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.planning import price_of
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages

LENGTHS = (1, 1, 2, 3, 4, 6, 8)
"""Layers of a stretch, drawn from these."""

APART = (2, 4)
"""Layers between two stretches, at least and at most."""

MARGIN = 2e-4
"""Part of the objective by which a stretch must gain: transfers beside it are smoothed anew, by chance."""

TRIALS = 6
"""Plans of a climb between those of all that gained, at first."""

PATIENCE = 6
"""Such plans in turn that are no better, after which a climb ends."""

CUTS = 0.3
"""Part of the stretches of which one layer is cut into other atoms, and keeps its grid."""

BESIDE = 0.2
"""Part of the stretches of which one layer is moved beside another one, where that is estimated to gain."""

SPREAD = 0.3
"""Part of itself by which an estimate is raised at most: estimates miss some waits."""

DEARER = (-1.0, 2.0)
"""Powers of two between which lies how many times as dear a cycle is to a stretch as to the plan."""


@dataclass(eq=False)
class Stretches:
    """Changes of a plan's layouts.

    Parameters
    ----------
    choice : of all layers
    state : the layouts of the first plan
    numbers : what is drawn comes from these
    """

    choice: LayoutChoice
    state: Layouts
    numbers: random.Random
    calls: int = 0
    _known: list[tuple[AtomicPlan, Floats]] = field(default_factory=list)
    _besides: Besides = field(init=False)

    def __post_init__(self) -> None:
        self._besides = Besides(self.choice)

    def climb(
        self, stages: Stages, base: Judged, source: str, within: Limits, most: int
    ) -> tuple[Layouts, Judged]:
        """Layouts that are better, each plan smoothed once, until `PATIENCE` plans of all that gained in turn
        are no better, or a limit strikes.

        What gained is kept without a plan of its own: its accounts are those of the plan that it was tried
        in, so that luck adds up.  After some trials all that was kept is planned; where that is no better
        it is given up, and the next one follows after half as many.

        Parameters
        ----------
        stages : what makes plans
        base : the plan of the first layouts, smoothed once
        source : what the trace calls the plans
        within : limits after which no trial begins
        most : trials at most
        """
        best, state, like, order = (self.state, base), self.state, base, np.array(self.choice.order)
        accounts, failed, count, trials = self._account(stages, base), 0, TRIALS, 0
        while failed < PATIENCE and trials < most and not (within.expired or stages.search.done):
            for _ in range(count):
                trials += 1
                if within.expired or stages.search.done:
                    break
                changes, moved = self._changes(state, price_of(stages.search))
                tried = planned(stages, moved, source, like[1], self.choice.order) if changes else None
                if tried is None:
                    continue
                like, told = tried, self._account(stages, tried)
                more = more_taken(stages.objective, accounts, told)[order]
                kept, refused = list(state), np.zeros(len(state), dtype=np.bool_)
                for turns, part in zip(changes, layers_beside(changes, len(state)), strict=True):
                    if more[part].sum() < -MARGIN:
                        for unit in self.choice.order[turns.start : turns.stop]:
                            kept[unit] = moved[unit]
                    else:
                        refused[order[part]] = True
                accounts, state = np.where(refused, accounts, told), tuple(kept)
            if state == best[0]:
                failed += 1
                continue
            judged = planned(stages, state, source, like[1], self.choice.order)
            if judged is not None and judged[0] < best[1][0]:
                best, failed = (state, judged), 0
            else:
                state, failed, count = best[0], failed + 1, max(1, count // 2)
            like = best[1]
            accounts = self._account(stages, like)
        return best

    def visit(
        self, stages: Stages, state: Layouts, base: Judged, source: str
    ) -> tuple[Layouts, Judged] | None:
        """Layouts that differ in some stretches, and their plan; ``None`` where no change gains.

        Parameters
        ----------
        stages : what makes plans
        state, base : the layouts of all layers, and their plan
        source : what the trace calls the plans
        """
        changes, moved = self._changes(state, price_of(stages.search))
        tried = self._planned(stages, moved, source, base) if changes else None
        if tried is None:
            return None
        order = self.choice.order
        more = more_taken(stages.objective, self._account(stages, base), self._account(stages, tried))
        more = more[list(order)]
        gained = [
            turns
            for turns, part in zip(changes, layers_beside(changes, len(state)), strict=True)
            if more[part].sum() < -MARGIN
        ]
        best = (moved, tried) if tried[0] < base[0] else None
        if 0 < len(gained) < len(changes):
            chosen = {order[turn] for turns in gained for turn in turns}
            state = tuple(
                new if unit in chosen else old
                for unit, (old, new) in enumerate(zip(state, moved, strict=True))
            )
            fewer = self._planned(stages, state, source, base)
            if fewer is not None and fewer[0] < min(base[0], tried[0]):
                best = state, fewer
        return best

    def _planned(self, stages: Stages, state: Layouts, source: str, base: Judged) -> Judged | None:
        """The plan of some layouts, smoothed as far as the one that it is compared with."""
        judged = planned(stages, state, source, base[1], self.choice.order)
        return judged if judged is None or not self.calls else stages.settled(judged, calls=self.calls)

    def _changes(self, state: Layouts, price: float) -> tuple[list[range], Layouts]:
        """Stretches that have other layouts, as turns of the order, and the layouts of all layers."""
        numbers, changes, moved = self.numbers, list[range](), state
        order, ended = self.choice.order, 0
        first = numbers.randrange(min(len(state), APART[1] + 2))
        while first < len(state):
            turns = range(first, min(len(state), first + numbers.choice(LENGTHS)))
            units, kind = order[turns.start : turns.stop], numbers.random()
            dearer = price * 2.0 ** numbers.uniform(*DEARER)
            other = moved
            if kind < CUTS:
                unit = numbers.choice(units)
                other = (*moved[:unit], self.choice.recut(unit, moved[unit], numbers), *moved[unit + 1 :])
            elif kind < CUTS + BESIDE:
                other = self._besides.placed(moved, dearer, [numbers.choice(units)])
            if kind >= CUTS and other == moved:  # most layers gain beside none
                other = self._rechosen(moved, units, dearer)
            changed = [at for at, unit in enumerate(order) if other[unit] != moved[unit]]
            first = turns.stop
            if changed and changed[0] >= ended:
                changes.append(range(changed[0], changed[-1] + 1))
                moved, ended = other, changed[-1] + 1
                first = max(first, ended)
            first += numbers.randint(*APART)
        return changes, moved

    def _rechosen(self, layouts: Layouts, units: Sequence[int], price: float) -> Layouts:
        """Layers, and those beside them, with the layouts of least estimate; the latter beside others where
        that is still estimated to gain.
        """
        beside = followers(self.choice.problem, layouts, self.choice.order)
        others = [other for unit in units for other in beside.get(unit, ())]
        moved = self.choice.rechosen(layouts, [*{*units, *others}], price, self.numbers, SPREAD)
        return self._besides.placed(moved, price, others) if others else moved

    def _account(self, stages: Stages, judged: Judged) -> Floats:
        """As of `layer_accounts`; of the last two plans it is known."""
        for answer, accounts in self._known:
            if answer is judged[1]:
                return accounts
        accounts = layer_accounts(stages.search.problem.problem, judged[1])
        self._known = [*self._known[-1:], (judged[1], accounts)]
        return accounts
