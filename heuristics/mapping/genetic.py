"""Genetic search over mappings with the operators of GAMMA (Kao and Krishna, ICCAD 2020).

A genome holds, per axis group, its tile sizes at every level, and per level its loop order.  GAMMA's
operators become

- *crossover*: every dimension's tile sizes come from one of both parents, every level's order likewise,
- *mutation*: other tile sizes of a dimension, or another residency,
- *reordering*: another loop order of a level,
- *growth* and *aging*: a dimension is spread over more, or over fewer, instances.

The best genomes live on unchanged; parents are the winners of small tournaments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.mapping.search import LayerSearch
from tilewright.foundation.arrays import Indices
from tilewright.foundation.options import option
from tilewright.heuristics.mapping.candidates import Arena, Candidates, Scores, joined
from tilewright.heuristics.mapping.stochastic import StochasticMethod
from tilewright.heuristics.mapping.variation import first_population, redrawn


@dataclass(frozen=True)
class Genetic(StochasticMethod):
    """Genetic search: crossover by dimension, mutation, reordering, growth and aging."""

    population: int = option(200, "genomes", low=2, high=100_000)
    generations: int = option(200, "generations", low=1)
    elite: float = option(0.1, "share that lives on unchanged", low=0, high=1)
    tournament: int = option(2, "genomes among which a parent is the best", low=1)
    crossover: float = option(0.6, "probability of two parents", low=0, high=1)
    mutation: float = option(0.6, "probability of other tile sizes of one dimension", low=0, high=1)
    reordering: float = option(0.3, "probability of another loop order of a level", low=0, high=1)
    growth: float = option(0.1, "probability of spreading a dimension further", low=0, high=1)
    aging: float = option(0.1, "probability of spreading a dimension less", low=0, high=1)

    name = "genetic"

    def explore(self, search: LayerSearch, arena: Arena, random: np.random.Generator) -> str:
        """Breed all generations, or until a limit strikes."""
        genomes, scores = first_population(arena, self.population, random)
        arena.offer_best(search, genomes, scores, self.name)
        for _ in range(self.generations):
            if search.done:
                break
            elite = max(1, int(self.elite * len(genomes)))
            children = self._bred(arena, genomes, scores, random)
            genomes, scores = joined(
                [
                    (genomes.take(scores.ranking()[:elite]), scores.take(scores.ranking()[:elite])),
                    (children, arena.score(children)),
                ]
            )
            ranking = scores.ranking()[: self.population]
            genomes, scores = genomes.take(ranking), scores.take(ranking)
            arena.offer_best(search, genomes, scores, self.name)
        return "" if search.key is not None else "no legal mapping was met"

    def _bred(
        self, arena: Arena, genomes: Candidates, scores: Scores, random: np.random.Generator
    ) -> Candidates:
        """A new population."""
        count = self.population
        rank = np.empty(len(genomes), dtype=np.intp)
        rank[scores.ranking()] = np.arange(len(genomes))

        def parents() -> Candidates:
            contenders = random.integers(len(genomes), size=(self.tournament, count))
            winner = np.argmin(rank[contenders], axis=0)
            return genomes.take(contenders[winner, np.arange(count)])

        first_parent, second_parent = parents(), parents()
        both = random.random(count) < self.crossover
        rows = np.where(
            both & (random.random(first_parent.rows.shape) < 0.5), second_parent.rows, first_parent.rows
        )
        choices = np.where(
            both & (random.random(first_parent.choices.shape) < 0.5),
            second_parent.choices,
            first_parent.choices,
        )
        self._mutate(arena, rows, choices, random)
        self._spread(arena, rows, random)
        return Candidates(rows, choices)

    def _mutate(self, arena: Arena, rows: Indices, choices: Indices, random: np.random.Generator) -> None:
        """Other tile sizes of one group, another order or residency; in place."""
        for position, chosen in _one_of(len(rows), rows.shape[1], self.mutation, random):
            rows[position, chosen] = arena.neighbours[position].vary(rows[position, chosen], random)
        for position, chosen in _one_of(len(choices), choices.shape[1], self.reordering, random):
            options = int(arena.options[position])
            choices[position, chosen] = redrawn(choices[position, chosen], options, random)

    def _spread(self, arena: Arena, rows: Indices, random: np.random.Generator) -> None:
        """Growth and aging; in place."""
        for probability, better in ((self.growth, np.greater), (self.aging, np.less)):
            for position, chosen in _one_of(len(rows), rows.shape[1], probability, random):
                rows[position, chosen] = arena.neighbours[position].respread(
                    rows[position, chosen], random, better
                )


def _one_of(
    parts: int, count: int, probability: float, random: np.random.Generator
) -> list[tuple[int, Indices]]:
    """Which genomes are changed in which of their parts: each in at most one."""
    if not parts:
        return []
    which = np.where(random.random(count) < probability, random.integers(parts, size=count), -1)
    return [(position, np.flatnonzero(which == position)) for position in range(parts)]
