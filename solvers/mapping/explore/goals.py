"""What an exploration is to prove, and which designs that still needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.network_objective import NetworkObjective
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.mapping.explore.bounds import SAFE
from tilewright.solvers.mapping.explore.state import State


@dataclass(frozen=True, slots=True)
class Goal:
    """The designs of the least value.

    Parameters
    ----------
    counts : how often each layer counts in a value
    least : how often it counts in a bound, where that differs
    summed : whether values are the sums of the layers' own keys, instead of the key of their totals
    layer : the one that counts where that is one alone; ``None`` for the whole network
    every : solve every design, for a map of them all
    brief : a value of any kind for every design is enough, from a short search each
    costs : per design; then the whole front of value and cost is proven
    """

    counts: tuple[int, ...]
    least: tuple[int, ...] | None = None
    summed: bool = False
    layer: int | None = None
    every: bool = False
    brief: bool = False
    costs: tuple[Fraction, ...] | None = None

    @property
    def least_counts(self) -> tuple[int, ...]:
        """How often each layer counts in a bound."""
        return self.counts if self.least is None else self.least

    @property
    def counting(self) -> list[int]:
        """The layers that count in a value or in a bound."""
        both = zip(self.counts, self.least_counts, strict=True)
        return [layer for layer, counts in enumerate(both) if any(counts)]


class Progress:
    """How far a goal is reached: values of designs so far, and which designs it still needs."""

    def __init__(self, state: State, goal: Goal) -> None:
        self.state = state
        self.goal = goal
        self.objective = NetworkObjective(state.objective, goal.summed)
        self.values: dict[int, Fraction] = {}
        additive = self.objective.adds_up(sum(goal.counts))
        self._power = 1 if additive else sum(state.objective.key_powers)
        self._counts = np.array(goal.least_counts, dtype=float)
        self._counting = np.array(
            [layer in {*goal.counting} for layer in range(len(goal.counts))], dtype=bool
        )
        self._costs = None if goal.costs is None else np.array([float(cost) for cost in goal.costs])
        self._best = np.full(len(state.engines), np.inf)
        self._seen = np.zeros(len(state.engines), dtype=np.int64)

    @property
    def complete(self) -> Bools:
        """Designs all of whose layers have an answer, proven or not."""
        return np.asarray(np.all(self.state.answered[self._counting], axis=0))

    @property
    def settled(self) -> Bools:
        """Designs all of whose layers are proven."""
        return np.asarray(np.all(self.state.proven[self._counting], axis=0))

    def low(self) -> Floats:
        """Lower bounds of the designs' values; infinite where some layer has no mapping."""
        rows = self.state.low()[self._counting]
        if not len(rows):
            return np.zeros(self._best.shape)
        # Hoelder's inequality bounds the objective of totals by the layers' own keys; where values are sums
        # the power is 1.
        return np.asarray((self._counts[self._counting] @ rows ** (1 / self._power)) ** self._power)

    def share(self, layer: int, design: int) -> float:
        """What a layer adds to the sum that a design's lower bound is a power of."""
        low = float(self.state.bounds[layer].low[design])
        return float(self._counts[layer] * low ** (1 / self._power))

    def bound(self, design: int) -> Fraction | None:
        """A design's proven lower bound; ``None`` where a layer has no mapping.

        Where all its layers are proven and values are sums, it is the value.
        """
        parts: list[tuple[int, Fraction]] = []
        for layer in self.goal.counting:
            count = self.goal.least_counts[layer]
            known, low = self.state.known.get((layer, design)), self.state.bounds[layer].low[design]
            if np.isinf(low) or (known is not None and known.reported.status == "infeasible"):
                return None
            if known is not None and known.reported.status == "optimal" and known.reported.value is not None:
                parts.append((count, known.reported.value))
            else:
                parts.append((count, _lowered(float(low))))
        return self.objective.bound(parts)

    def beaten(self) -> Bools:
        """Designs whose bounds are above what rules them out."""
        return np.asarray(self.low() * SAFE > self._best)

    def cap(self, layer: int, design: int, slack: float) -> Fraction | None:
        """A key of the layer above which its design is ruled out; ``None`` where nothing is known to beat it.

        Parameters
        ----------
        slack : at least 1: so much above that, so that the proof says more about other designs
        """
        best = float(self._best[design])
        if self.goal.every or self.goal.brief or np.isinf(best):
            return None
        count = self.goal.least_counts[layer]
        # What the other layers cost at least leaves this one so much before the design is beaten.
        others = float(self.low()[design]) ** (1 / self._power) - self.share(layer, design)
        allowance = ((best * (2 - SAFE) / SAFE * slack) ** (1 / self._power) - others) / count
        return Fraction(int(allowance**self._power) + 1) if allowance > 0 else Fraction(1)

    def refresh(self) -> None:
        """Take in what has been answered since."""
        valued = np.all(self.state.valued[self._counting], axis=0)
        for design in np.flatnonzero(valued & (self.state.news != self._seen)):
            self._seen[design] = self.state.news[design]
            reported = self.state.reported(int(design), self.goal.counts)
            if reported is None:
                continue
            value = self.objective.value(
                (count, layer_answer.energy or Fraction(0), layer_answer.cycles or 0)
                for count, layer_answer in reported
            )
            self.values[int(design)] = value
            # Where the front of value and cost is asked for a value rules out no cheaper design.
            beaten = np.ones(len(self._best), dtype=bool)
            if self._costs is not None:
                beaten = self._costs >= self._costs[design]
            self._best[beaten] = np.minimum(self._best[beaten], float(value) * (2 - SAFE))

    def needed(self, low: Floats) -> Bools:
        """Designs that must still be looked at: what is known does not rule them out.

        A design is ruled out where its bound is above the value of another one (that costs no more, where the
        front is asked for).  Designs that are as good as the best are all looked at.
        """
        left = ~self.complete & ~np.isinf(low)
        if self.goal.every or self.goal.brief:
            return left
        return np.asarray(left & (low * SAFE <= self._best))


def _lowered(low: float) -> Fraction:
    """A lower bound that is a float, made safe; without a fraction where that is nothing to it."""
    safe = low * SAFE
    return Fraction(int(safe)) if safe >= 1 << 40 else Fraction(safe)


def best_of(values: dict[int, Fraction], costs: Sequence[Fraction] | None) -> int | None:
    """The design of the least value, among equals that of the least cost, then the first."""
    if not values:
        return None
    return min(values, key=lambda design: (values[design], 0 if costs is None else costs[design], design))


def front_of(values: dict[int, Fraction], costs: Sequence[Fraction]) -> list[int]:
    """Designs that no other one equals or beats in both value and cost, by cost; the first among equals."""
    front: list[int] = []
    for member in sorted(values, key=lambda design: (costs[design], values[design], design)):
        if not front or values[member] < values[front[-1]]:
            front.append(member)
    return front
