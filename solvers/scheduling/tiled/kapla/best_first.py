"""Proven chains of segments: schemes are evaluated best-first, until bounds meet the best chain.

At first every scheme has the lower bound of its estimate.  `relaxation.py` bounds all chains through each
scheme; schemes whose bound reaches the value of the best chain known are excluded for good.  The most
promising of the others are evaluated, which raises bounds and gives better chains.  When all remaining
schemes are evaluated, the best chain of them is found exactly over undominated labels (energy, cycles).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentSpace
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments, best_chain
from tilewright.solvers.scheduling.tiled.kapla.prices import BestKnown, Prices, least_prices
from tilewright.solvers.scheduling.tiled.kapla.relaxation import Edges, Relaxation

AT_ONCE = 48
"""Schemes that are evaluated between two relaxations."""


@dataclass
class BestFirst:
    """Searches all chains of a slicing under the closed form.

    Parameters
    ----------
    stop : whether the time is up
    notify : notified of every better chain
    warm : partial chains per state of the dynamic program on estimates that comes first; 0 for none
    """

    form: ClosedForm
    slicing: Slicing = field(default_factory=Slicing)
    stop: Callable[[], bool] = lambda: False
    notify: Callable[[Chain], None] = lambda chain: None
    warm: int = 4

    def solve(self) -> ChosenChain:
        """Prove the best chain, or return the bounds reached."""
        best = BestKnown(self.form, self.stop, self.notify)
        if self.warm:
            KaplaSolver(self.form, self.slicing, self.warm, stop=self.stop, notify=best.offer).solve()
        bound = inf
        for splits, space in self.slicing.spaces(self.form):
            schemes = (scheme for start in space.starts[:-1] for scheme in space.schemes(start))
            prices = least_prices(best, splits, schemes)
            bound = min(bound, 0.0 if prices is None else _Split(prices, space).search())
        return best.result(bound)


class _Split:
    """The chains with one number of subbatches of the root."""

    def __init__(self, prices: Prices, space: SegmentSpace) -> None:
        self.prices, self.space, self.best = prices, space, prices.best
        number = {start: i for i, start in enumerate(space.starts)}
        tail = np.array([number[scheme.start] for scheme in prices.schemes], dtype=np.int64)
        head = np.array([number[scheme.end] for scheme in prices.schemes], dtype=np.int64)
        self.edges = Edges(tail, head, len(number))

    def search(self) -> float:
        """A bound on the chains, infinite where none is better than the best one known."""
        prices = self.prices
        while True:
            relaxation = self._relaxation()
            bound = relaxation.bound()
            value = self.best.value
            if bound >= value:
                return inf
            through = relaxation.through()
            gone = through >= value
            prices.drop(gone)
            chains = relaxation.chains()
            self._try(chains)
            waiting = np.flatnonzero(~prices.known & ~gone)
            if not len(waiting):
                return self._finish()
            if self.best.stop():
                return bound
            preferred = {edge for chain in chains for edge in chain if not prices.known[edge]}
            order = waiting[np.argsort(through[waiting], kind="stable")]
            chosen = [*sorted(preferred), *(int(scheme) for scheme in order if scheme not in preferred)]
            for edge in chosen[: max(AT_ONCE, len(preferred))]:
                if self.best.stop():
                    return bound
                prices.evaluate(edge)

    def _relaxation(self) -> Relaxation:
        form, prices = self.best.form, self.prices
        powers = form.energy_power, form.delay_power
        return Relaxation(self.edges, prices.energy, prices.cycles, prices.scale, powers)

    def _try(self, chains: list[list[int]]) -> None:
        """Offer the chains whose schemes are all evaluated."""
        for chain in chains:
            if self.prices.known[chain].all():
                self.prices.offer(chain)

    def _finish(self) -> float:
        """The best chain of the remaining schemes, all of which are evaluated."""
        number: dict[object, int] = {}
        segments, prices = Segments(), self.prices
        for edge in np.flatnonzero(np.isfinite(prices.energy)):
            scheme = prices.schemes[edge]
            energy, cycles = float(prices.energy[edge]), int(prices.cycles[edge])
            segment = Segment(scheme.start, scheme.end, energy, cycles, scheme.tree)
            number[segment.tree] = int(edge)
            segments.add(segment)
        chain, _ = best_chain(segments, list(self.space.starts), self.best.form.value)
        if chain:
            prices.offer(number[segment.tree] for segment in chain)
        return inf
