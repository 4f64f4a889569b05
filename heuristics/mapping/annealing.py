"""Simulated annealing over the map space, several walkers side by side.

A walker moves to a neighbour: other tile sizes of one axis group
(:mod:`tilewright.heuristics.mapping.neighbours`), or another loop order or residency.  A worse neighbour is
accepted with probability ``exp(-change / temperature)``, the change being that of the logarithm of the
objective, so that one schedule of temperatures serves every objective and layer.  Illegal mappings are
passed through only on the way to the first legal one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.mapping.search import LayerSearch
from tilewright.foundation.arrays import Bools, Floats
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.candidates import Arena, Candidates, Scores
from tilewright.heuristics.mapping.stochastic import StochasticMethod
from tilewright.heuristics.mapping.variation import first_population, vary


@dataclass(frozen=True)
class Annealing(StochasticMethod):
    """Simulated annealing with several walkers side by side."""

    walkers: int = option(128, "walkers side by side", low=1, high=100_000)
    steps: int = option(400, "moves of every walker", low=1)
    hot: float = option(0.3, "first temperature, relative change of the objective", low=0)
    cold: float = option(0.001, "last temperature", low=0)
    restarts: float = option(0.1, "share of last steps that start from the best mapping", low=0, high=1)

    name = "annealing"

    def explore(
        self, search: LayerSearch, arena: Arena, random: np.random.Generator, source: str = name
    ) -> str:
        """Anneal within an arena, which may hold a part of the search's own space.

        Cools down once, or until a limit strikes.

        Parameters
        ----------
        search : takes the best candidates, and says when to stop
        arena : draws, moves and scores candidates
        random : the only source of chance
        source : what the trace calls its answers
        """
        here, scores = first_population(arena, self.walkers, random)
        best, best_scores = here.take(scores.ranking()[:1]), scores.take(scores.ranking()[:1])
        arena.offer_best(search, here, scores, source)
        for step in range(self.steps):
            if search.done:
                break
            if step == int(self.steps * (1 - self.restarts)):
                everyone = np.zeros(self.walkers, dtype=np.intp)
                here, scores = best.take(everyone), best_scores.take(everyone)
            temperature = self._temperature(step)
            here, scores = self._move(arena, here, scores, temperature, random)
            place = scores.best()
            if _better(scores, place, best_scores):
                index = np.array([place], dtype=np.intp)
                best, best_scores = here.take(index), scores.take(index)
                arena.offer_best(search, best, best_scores, source)
        return "" if search.key is not None else "no legal mapping was met"

    def _temperature(self, step: int) -> float:
        """Geometric from hot to cold."""
        if self.hot <= 0 or self.cold <= 0:
            return 0.0
        return float(self.hot * (self.cold / self.hot) ** (step / max(1, self.steps - 1)))

    def _move(
        self, arena: Arena, here: Candidates, scores: Scores, temperature: float, random: np.random.Generator
    ) -> tuple[Candidates, Scores]:
        there = vary(arena, here, random)
        tried = arena.score(there)
        accepted = _accepted(scores, tried, temperature, random)
        return here.replaced(accepted, there), Scores(
            np.where(accepted, tried.keys, scores.keys), np.where(accepted, tried.excess, scores.excess)
        )


def _better(scores: Scores, place: int, than: Scores) -> bool:
    rank, former_rank = (scores.excess[place], scores.keys[place]), (than.excess[0], than.keys[0])
    return bool(rank < former_rank)


def _accepted(old: Scores, new: Scores, temperature: float, random: np.random.Generator) -> Bools:
    """Metropolis' rule among legal mappings; before the first one, less excess is better."""
    gain = _logarithm(old.keys) - _logarithm(new.keys)
    draw = random.random(len(gain))
    with np.errstate(divide="ignore"):
        uphill = gain >= (temperature * np.log(draw) if temperature else 0.0)
    return np.where(old.legal, new.legal & uphill, new.excess <= old.excess)


def _logarithm(keys: Floats) -> Floats:
    return np.log(np.where(np.isfinite(keys), np.maximum(keys, 1e-300), 1.0))
