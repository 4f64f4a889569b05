"""AutoTVM's search over the map space: annealing on boosted trees proposes what is measured next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.mapping.search import LayerSearch
from tilewright.foundation.arrays import Floats, Indices
from tilewright.foundation.options import option
from tilewright.heuristics.boosted_trees import LEAST, Tuning
from tilewright.heuristics.mapping.candidates import Arena, Candidates
from tilewright.heuristics.mapping.stochastic import StochasticMethod
from tilewright.heuristics.mapping.variation import vary


@dataclass(frozen=True)
class AutoTvm(StochasticMethod):
    """Annealing guided by boosted trees."""

    iterations: int = option(8, "batches, with trees fitted between two; the paper takes 1024", low=1)
    batch: int = option(64, "mappings measured at once, and walkers; the paper takes 128", low=2)

    name = "autotvm"

    def explore(self, search: LayerSearch, arena: Arena, random: np.random.Generator) -> str:
        """Offer the best mapping of every batch."""
        groups = len(arena.sizes)

        def candidates(states: Indices) -> Candidates:
            return Candidates(states[:groups], states[groups:])

        def states(them: Candidates) -> Indices:
            return np.concatenate([them.rows, them.choices])

        def features(where: Indices) -> Floats:
            tables = zip(arena.tables.tables, where[:groups], strict=True)
            tiles = [np.log2(table.group.rows[rows]) for table, rows in tables]
            return np.concatenate([*tiles, where[groups:].T], axis=1)

        def measure(where: Indices) -> Floats:
            lot = candidates(where)
            scores = arena.score(lot)
            arena.offer_best(search, lot, scores, self.name)
            return np.log(np.maximum(scores.keys, LEAST))

        count = Tuning(
            draw=lambda number: states(arena.draw(number, random)),
            move=lambda where: states(vary(arena, candidates(where), random)),
            features=features,
            measure=measure,
            stop=lambda: search.done,
            batch=self.batch,
            seed=search.limits.seed,
        ).run(self.iterations)
        return "" if search.key is not None else f"none of {count:,} mappings is legal"
