"""Random sampling with a victory condition, as Timeloop's random search.

Mappings are drawn from the whole map space; the search declares victory once a number of legal mappings in
a row have not been better than the best, and gives up once a number in a row have been illegal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.mapping.search import LayerSearch
from tilewright.foundation.arrays import Indices
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.candidates import Arena, Scores
from tilewright.heuristics.mapping.stochastic import StochasticMethod

_BATCH = 4096


@dataclass(frozen=True)
class RandomSearch(StochasticMethod):
    """Random mappings until none has been better for a while."""

    victory: int = option(500, "legal mappings in a row without improvement that end it", low=1)
    timeout: int = option(1_000_000, "illegal mappings in a row that end it", low=1)

    name = "random"

    def explore(self, search: LayerSearch, arena: Arena, random: np.random.Generator) -> str:
        """Draw until victory, timeout or a limit."""
        best, idle, illegal = np.inf, 0, 0
        while not search.done:
            batch = arena.draw(_BATCH, random)
            scores = arena.score(batch)
            seen, best, idle, illegal = self._seen(scores, best, idle, illegal)
            arena.offer_best(search, batch.take(seen), scores.take(seen), self.name)
            if idle >= self.victory or illegal >= self.timeout:
                break
        return "" if np.isfinite(best) else f"no legal mapping among {illegal} in a row"

    def _seen(self, scores: Scores, best: float, idle: int, illegal: int) -> tuple[Indices, float, int, int]:
        """The mappings that are looked at one after the other before the search ends, and its new state."""
        legal = np.flatnonzero(scores.legal)
        gaps = np.diff(legal, prepend=-1 - illegal)
        too_long = np.flatnonzero(gaps > self.timeout)
        if len(too_long):
            legal = legal[: too_long[0]]
        for count, place in enumerate(legal):
            if scores.keys[place] < best:
                best, idle = float(scores.keys[place]), 0
            else:
                idle += 1
                if idle >= self.victory:
                    return legal[: count + 1], best, idle, 0
        if len(too_long):
            return legal, best, idle, self.timeout
        last = int(legal[-1]) if len(legal) else -1 - illegal
        return legal, best, idle, len(scores.keys) - 1 - last
