"""Lower bounds of every layer on every design, and how they pass from one design to another.

``low[layer, design]`` is a lower bound of the objective key.  It begins with what is compulsory; every proven
bound on one machine then raises those of all machines that it speaks of (``docs/explore.md`` has the proof):

    E_d >= share * E' + rest    share = min over prices of p_d / p',  rest = sum (p_d - share p') least count
    E_d >= ratio * E'           ratio = least of (sum p_d n) / (sum p' n) over counts n within their bounds

for any mapping that is legal on ``d``, where no capacity of ``d`` exceeds the solved machine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost.base import comparable_rounding
from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.objective import Objective
from tilewright.foundation.arrays import Bools, Floats, Indices
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.solvers.mapping.explore.compulsory import CountBounds, count_bounds
from tilewright.solvers.mapping.explore.features import Survey
from tilewright.workloads.mapping.operator import Operator

SAFE = 1 - 1e-9
"""Relative; far above the rounding of the few floats that a bound is made of."""
COMPULSORY = -1


@dataclass(frozen=True, slots=True)
class Anchor:
    """A proven bound on one machine that speaks of others.

    Parameters
    ----------
    design : of which it was solved
    key : bound of the objective key; ``None`` where no mapping exists
    """

    design: int
    key: Fraction | None


class LayerBounds:
    """One layer's lower bounds on all designs.

    Parameters
    ----------
    limits : once they strike, operations alone bound the designs whose bounds are not known yet

    Attributes
    ----------
    engine : gives a design's machine, trimmed to what the layer can use
    signatures : equal for designs that ask the same question
    low : lower bounds of the objective key, infinite where no mapping exists
    why : per design, the anchor that its bound comes from, or ``COMPULSORY``
    exact : whether that bound is the anchor's own: prices are equal
    """

    def __init__(
        self,
        operator: Operator,
        engines: Sequence[Engine],
        objective: Objective,
        model: str,
        factors: str | None,
        *,
        comparing: bool,
        limits: Limits | None = None,
    ) -> None:
        machines = list(engines)
        if fitted(machines[0], operator) is not machines[0]:  # the layer states widths
            machines = [fitted(engine, operator) for engine in engines]
        survey = Survey(machines, operator, trims=comparing)
        self.engine, self.signatures, self._shapes = survey.engine, survey.signatures, survey.shapes
        self._objective = objective
        rounding = comparable_rounding(cost_model(model))
        self._comparing = comparing and rounding is not None
        # A model that rounds energy may count that much less on one design than on another.
        self._rounding = rounding or 0
        self._prices, self._capacities = survey.prices, survey.capacities
        count = len(engines)
        self.anchors: list[Anchor] = []
        self.why = np.full(count, COMPULSORY)
        self.exact = np.zeros(count, dtype=bool)
        self.low = np.zeros(count)
        self._least = np.zeros_like(self._prices)
        self._most = np.zeros_like(self._prices)
        self._cycles = np.zeros(count)
        self._energy = np.zeros(count)
        if self._comparing:
            for number in range(int(self._shapes.max()) + 1):
                own = np.flatnonzero(self._shapes == number)
                counts = count_bounds(operator, survey.largest(own), model, factors, limits)
                self._begin(own, counts, [-(-operator.iterations // survey.peaks[index]) for index in own])

    def _begin(self, own: Indices, counts: CountBounds, peaks: Sequence[int]) -> None:
        """What is compulsory on the designs of one shape."""
        width = len(counts.least)
        self._least[own, :width] = counts.least
        self._most[own, :width] = counts.most
        self._cycles[own] = np.maximum(counts.cycles, peaks)
        # Energy is a sum of prices times counts, so that least counts give a bound at any prices.
        self._energy = np.maximum(0.0, (self._prices * self._least).sum(axis=1) - self._rounding)
        a, b = self._objective.key_powers
        self.low[own] = (self._energy[own] ** a) * (self._cycles[own] ** b) * SAFE

    def learn(self, design: int, key: Fraction | None) -> None:
        """A bound was proven on a design's machine: raise those of all designs that it speaks of.

        Parameters
        ----------
        key : bound of the objective key; ``None`` where no mapping exists
        """
        # Where designs cannot be compared a bound speaks of those alone that ask the same question.
        if not self._comparing:
            same = [
                index
                for index, signature in enumerate(self.signatures)
                if signature == self.signatures[design]
            ]
            mask = np.zeros(len(self.low), dtype=bool)
            mask[same] = True
        else:
            mask = (self._shapes == self._shapes[design]) & np.all(
                self._capacities <= self._capacities[design], axis=1
            )
        if key is None:
            reached = np.full(len(self.low), np.inf)
            equal = mask
        elif self._comparing:
            reached, equal = self._passed(design, float(key))
        else:
            reached, equal = np.full(len(self.low), float(key)), mask
        # Among equal bounds one of equal prices is preferred: its mapping may be carried over.
        better = mask & ((reached > self.low) | (equal & ~self.exact & (reached >= self.low)))
        if better.any():
            self.why[better] = len(self.anchors)
            self.exact[better] = equal[better]
            self.low[better] = reached[better]
        self.anchors.append(Anchor(design, key))

    def _passed(self, design: int, key: float) -> tuple[Floats, Bools]:
        """The bound as it reaches every design, and on which of them all prices are equal."""
        a, b = self._objective.key_powers
        # Cycles do not depend on prices.
        if a == 0:
            return np.full(len(self.low), key), np.ones(len(self.low), dtype=bool)
        own = self._prices[design]
        paid = own > 0
        equal = np.all(self._prices == own, axis=1)
        share = np.zeros(len(self.low))
        if paid.any():
            share = (self._prices[:, paid] / own[paid]).min(axis=1)
        rest = (np.maximum(0.0, self._prices - share[:, None] * own) * self._least).sum(axis=1)
        ratio = least_ratio(self._prices, own, self._least, self._most)
        # Two bounds, neither of which is always the better one (docs/explore.md, carried).
        reached = np.maximum(share**a * key + rest**a * self._cycles**b, ratio**a * key)
        if self._rounding:
            energy = np.maximum(share * self._energy[design] + rest, ratio * self._energy[design])
            # Relative to the energy: rounding on both designs, first here, then there.
            lost = self._rounding * (np.maximum(share, ratio) + 1) / np.maximum(energy, 1e-30)
            reached = reached * np.maximum(0.0, 1 - lost) ** a
        # At equal prices the bound is carried as it is, without any arithmetic.
        return np.where(equal, key, reached * SAFE), equal


def least_ratio(prices: Floats, own: Floats, least: Floats, most: Floats) -> Floats:
    """Per design, the least ratio of what a mapping costs there and at the prices ``own``.

    Parameters
    ----------
    prices : of the designs, shape (designs, prices)
    own : of the design on which the bound was proven, shape (prices,)
    least, most : bounds of the counts, of the same shape

    Notes
    -----
    A ratio of two sums that are linear in the counts is least at a corner of their box (Dinkelbach 1967): at
    the ratio ``q`` each count is at its most where ``p_d < q p'`` and at its least elsewhere.  The iteration
    comes from above; a ratio counts only where the sum of ``(p_d - q p') n`` at that corner is not negative.
    """
    ratio = np.full(len(prices), np.inf)
    counts = least.copy()
    for _ in range(30):
        paid = counts @ own
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(paid > 0, (prices * counts).sum(axis=1) / paid, np.inf)
        if np.all(ratios >= ratio * (1 - 1e-13)):
            break
        ratio = np.minimum(ratio, ratios)
        counts = np.where(prices < ratio[:, None] * own, most, least)
    ratio = np.where(np.isfinite(ratio), ratio, 0.0) * SAFE
    gains = prices - ratio[:, None] * own
    worst = (gains * np.where(gains < 0, most, least)).sum(axis=1)
    return np.where(worst >= 0, ratio, 0.0)
