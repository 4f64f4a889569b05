"""Stretches: runs of layers that are given other layouts together, many of them in one plan.

Layers of a plan of layouts run in turn, so that what a change costs or spares lies in the steps and the
transfers of its own layers and of those beside them.  One plan therefore tries a dozen changes far from each
other: every stretch is judged by what its layers, and half of those up to the next one, take in the new plan
and in the old one.  A second plan has those alone that gained.  The evaluator judges both.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Floats
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts
from tilewright.heuristics.scheduling.tiled.layouts.arranging import planned
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layouts
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice, recut
from tilewright.heuristics.scheduling.tiled.planning import price_of
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages

LENGTHS = (1, 1, 2, 3, 4, 6, 8)
"""Layers of a stretch, drawn from these."""

APART = (2, 4)
"""Layers between two stretches, at least and at most."""

CUTS = 0.3
"""Part of the stretches of which one layer is cut into other atoms, and keeps its grid."""

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
    _known: tuple[AtomicPlan, Floats, Floats] | None = None

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
        if not changes:
            return None
        tried = self._planned(stages, moved, source, base)
        if tried is None:
            return None
        more = self._more(stages, base, tried)
        borders = [0, *((a[-1] + b[0] + 1) // 2 + 1 for a, b in pairwise(changes)), len(state)]
        gained = [
            change
            for change, (low, high) in zip(changes, pairwise(borders), strict=True)
            if more[low:high].sum() < 0
        ]
        best = (moved, tried) if tried[0] < base[0] else None
        if 0 < len(gained) < len(changes):
            chosen = {unit for change in gained for unit in change}
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
        judged = planned(stages, state, source, base[1])
        return judged if judged is None or not self.calls else stages.settled(judged, calls=self.calls)

    def _changes(self, state: Layouts, price: float) -> tuple[list[range], Layouts]:
        """Stretches that have other layouts, and the layouts of all layers."""
        numbers, changes, moved = self.numbers, list[range](), state
        first = numbers.randrange(min(len(state), APART[1] + 2))
        while first < len(state):
            units = range(first, min(len(state), first + numbers.choice(LENGTHS)))
            first = units[-1] + 1 + numbers.randint(*APART)
            if numbers.random() < CUTS:
                unit = numbers.choice(units)
                other = (*moved[:unit], recut(moved[unit], numbers), *moved[unit + 1 :])
            else:
                dearer = price * 2.0 ** numbers.uniform(*DEARER)
                other = self.choice.rechosen(moved, units, dearer, numbers, SPREAD)
            if other != moved:
                changes.append(units)
                moved = other
        return changes, moved

    def _more(self, stages: Stages, base: Judged, tried: Judged) -> Floats:
        """What every layer takes more of the objective than in another plan, as a part of that plan's key."""
        problem = stages.search.problem.problem
        if self._known is None or self._known[0] is not base[1]:
            self._known = base[1], *layer_accounts(problem, base[1])
        _, energy, cycles = self._known
        energies, all_cycles = layer_accounts(problem, tried[1])
        a, b = float(problem.objective.energy_power), float(problem.objective.delay_power)
        more: Floats = a * (energies - energy) / energy.sum() + b * (all_cycles - cycles) / cycles.sum()
        return more
