"""The engines on which each layer of a network is at home, so that layers may work beside each other.

Where layers follow each other on all engines, each engine is sent a part of every layer's weights, and waits
for results of all others in between.  Where a layer is at home on some engines only, these alone are sent its
weights, and it begins as soon as its first atoms are ready.
"""

from __future__ import annotations

import random

import numpy as np

from tilewright.foundation.arrays import Bools, Int32s

Run = tuple[int, int]
"""Engines along the zig-zag: the first, and how many."""

Homes = tuple[Run, ...]
"""The engines of each layer."""

ANEW, ELSEWHERE, EVERYWHERE, ALIKE = 0.25, 0.25, 0.1, 0.6
"""How often homes are drawn anew, one layer's is, or is all engines; otherwise a border moves by one engine,
and so often that of all layers with the same home.
"""

DIVIDED = (1, 1, 2, 3)
"""Borders between layers with different homes, drawn from these."""


def everywhere(layers: int, engines: int) -> Homes:
    """All layers on all engines."""
    return ((0, engines),) * layers


def drawn_homes(layers: int, engines: int, numbers: random.Random) -> Homes:
    """Layers in a row share a run of engines, and those before and behind them have others."""
    groups = 1 + min(layers - 1, engines - 1, numbers.choice(DIVIDED))
    cuts = sorted(numbers.sample(range(1, layers), groups - 1))
    marks = [0, *sorted(numbers.sample(range(1, engines), groups - 1)), engines]
    group = [sum(cut <= layer for cut in cuts) for layer in range(layers)]
    return tuple((marks[at], marks[at + 1] - marks[at]) for at in group)


def rehoused(homes: Homes, engines: int, numbers: random.Random) -> Homes:
    """Homes drawn anew, or with one layer elsewhere or everywhere, or with a border moved by one engine."""
    chance, at = numbers.random(), numbers.randrange(len(homes))
    if chance < ANEW:
        return drawn_homes(len(homes), engines, numbers)
    first, count = homes[at]
    if chance < ANEW + ELSEWHERE:
        count = numbers.randint(1, engines)
        home = numbers.randint(0, engines - count), count
    elif chance < ANEW + ELSEWHERE + EVERYWHERE:
        home = 0, engines
    else:
        further = numbers.choice((-1, 1))
        home = (first + further, count - further) if numbers.random() < 0.5 else (first, count + further)
        if home[0] < 0 or home[1] < 1 or sum(home) > engines:
            return homes
        if numbers.random() < ALIKE:
            return tuple(home if other == homes[at] else other for other in homes)
    return (*homes[:at], home, *homes[at + 1 :])


def allowed(homes: Homes, along: Int32s, engines: int) -> Bools:
    """Per layer and engine, whether the layer is at home there.

    Parameters
    ----------
    along : engines in the order of the runs
    engines : of the machine
    """
    table = np.zeros((len(homes), engines), dtype=np.bool_)
    for unit, (first, count) in enumerate(homes):
        table[unit, along[first : first + count]] = True
    return table
