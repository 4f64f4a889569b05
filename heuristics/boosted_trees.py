"""Simulated annealing guided by boosted regression trees, as in AutoTVM (Chen et al., *Learning to Optimize
Tensor Programs*, NeurIPS 2018, sections 3 and 5).

Configurations are measured in batches.  Between two batches trees are fitted to everything measured so far,
and annealing on what they predict, which measures nothing, proposes the next batch.  A part of every batch is
drawn at random.  The trees are scikit-learn's, which comes with the extra ``learning``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tilewright.foundation.arrays import Floats, Indices

TREES, DEPTH, RATE = 40, 4, 0.25
"""Size of the model and its learning rate."""
STEPS = 40
"""Moves of every walker between two batches; temperatures fall from one standard deviation to nothing."""
CHANCE = 0.1
"""Part of a batch that is drawn at random, whatever the trees predict."""
ILLEGAL = 1.0
"""How far above the worst legal configuration an illegal one is taken to be, in logarithms."""
LEAST = 1e-300
"""What a cost of 0 is taken to be in logarithms."""


@dataclass
class Tuning:
    """One space that is searched; configurations are columns of numbers, shape (knobs, configurations).

    Parameters
    ----------
    draw : that many configurations at random
    move : a neighbour of each
    features : what the trees see of configurations, shape (configurations, features)
    measure : logarithms of their costs; infinite for illegal ones
    stop : whether the time is up
    batch : configurations measured at once, and walkers of the annealing
    seed : of all chance
    """

    draw: Callable[[int], Indices]
    move: Callable[[Indices], Indices]
    features: Callable[[Indices], Floats]
    measure: Callable[[Indices], Floats]
    stop: Callable[[], bool]
    batch: int
    seed: int
    _known: dict[tuple[int, ...], float] = field(init=False, default_factory=dict)

    def run(self, iterations: int) -> int:
        """Measure that many batches, or as many as there are; returns the number of configurations."""
        self._random = np.random.default_rng(self.seed)
        for _ in range(iterations):
            if self.stop():
                break
            lot = self._next()
            if not lot:
                break
            costs = self.measure(np.array(lot, dtype=np.intp).T)
            self._known.update(zip(lot, costs.tolist(), strict=True))
        return len(self._known)

    def _next(self) -> list[tuple[int, ...]]:
        """The next batch, none of it measured before; empty where nothing new is met."""
        lot: dict[tuple[int, ...], None] = {}
        if len(self._known) > 1 and np.isfinite(list(self._known.values())).any():
            self._take(lot, self._proposed(), self.batch - round(CHANCE * self.batch))
        for _ in range(STEPS):
            if len(lot) >= self.batch:
                break
            self._take(lot, self.draw(self.batch), self.batch)
        return list(lot)

    def _take(self, lot: dict[tuple[int, ...], None], states: Indices, most: int) -> None:
        """Add what is not known yet, in the sequence given."""
        for state in map(tuple, states.T.tolist()):
            if len(lot) >= most:
                break
            if state not in self._known:
                lot[state] = None

    def _proposed(self) -> Indices:
        """Where the walkers have been, least predictions first."""
        from sklearn.ensemble import GradientBoostingRegressor

        known = np.array(list(self._known), dtype=np.intp).T
        costs = np.array(list(self._known.values()))
        legal = np.isfinite(costs)
        costs[~legal] = costs[legal].max() + ILLEGAL
        model = GradientBoostingRegressor(
            n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=self.seed
        )
        model.fit(self.features(known), costs)
        here = known[:, np.argsort(costs, kind="stable")[: self.batch]]
        cost: Floats = model.predict(self.features(here))
        been, predicted = [here], [cost]
        for step in range(STEPS):
            there = self.move(here)
            other: Floats = model.predict(self.features(there))
            heat = costs.std() * (1 - step / STEPS)
            risen = np.maximum(other - cost, 0)
            accepted = risen <= heat * self._random.exponential(size=len(risen))
            here, cost = np.where(accepted, there, here), np.where(accepted, other, cost)
            been.append(there)
            predicted.append(other)
        visited = np.concatenate(been, axis=1)
        return visited[:, np.argsort(np.concatenate(predicted), kind="stable")]
