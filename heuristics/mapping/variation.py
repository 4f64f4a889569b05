"""How candidates are varied: a move of one decision, and a first population."""

from __future__ import annotations

import numpy as np

from tilewright.foundation.arrays import Indices
from tilewright.heuristics.mapping.candidates import Arena, Candidates, Scores, joined

_DRAWS = 4096
_BATCHES = 8


def vary(arena: Arena, candidates: Candidates, random: np.random.Generator) -> Candidates:
    """Change one decision of every candidate: the tile sizes of a group, or one choice."""
    groups, selectors = len(arena.sizes), len(arena.options)
    which = random.integers(max(1, groups + selectors), size=len(candidates))
    rows, choices = candidates.rows.copy(), candidates.choices.copy()
    for position in range(groups):
        chosen = np.flatnonzero(which == position)
        rows[position, chosen] = arena.neighbours[position].vary(rows[position, chosen], random)
    for position in range(selectors):
        chosen = np.flatnonzero(which == groups + position)
        choices[position, chosen] = redrawn(choices[position, chosen], int(arena.options[position]), random)
    return Candidates(rows, choices)


def redrawn(values: Indices, options: int, random: np.random.Generator) -> Indices:
    """Another option than the present one, all equally likely."""
    return (values + random.integers(1, max(2, options), size=len(values))) % options


def first_population(arena: Arena, count: int, random: np.random.Generator) -> tuple[Candidates, Scores]:
    """The best of several lots of random candidates; legal ones as far as they are met."""
    drawn = arena.draw(max(count, _DRAWS), random)
    best = (drawn, arena.score(drawn))
    for _ in range(_BATCHES):
        ranking = best[1].ranking()[:count]
        best = (best[0].take(ranking), best[1].take(ranking))
        if best[1].legal.sum() >= min(count, 16):
            break
        # nearly nothing is legal: walk down the excess from the least bad ones
        near = vary(arena, best[0].take(np.resize(np.arange(len(ranking)), _DRAWS)), random)
        best = joined([best, (near, arena.score(near))])
    ranking = best[1].ranking()[:count]
    return best[0].take(ranking), best[1].take(ranking)
