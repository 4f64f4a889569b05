"""The most that an engine earns with a chain of layers, by the bytes that it is brought, in machine code.

States are cells of bytes brought so far and of own results of the layer before.  Where cells round, what is
brought counts as the least of its cell and is used as the most of it, so that nothing an engine can have
earns more; otherwise every amount is that of a corner, which is quicker to be close.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.foundation.arrays import Bools, Floats
from tilewright.foundation.compiled import compiled

_TINY = 1e-9
"""Part of a cell that is given away for the rounding of floats."""


class Chain(NamedTuple):
    """Layers of which each but the first reads the results of the one before it.

    Parameters
    ----------
    products : whether a layer multiplies all its weights with all its inputs; otherwise each result has
        inputs, and weights, to itself
    weights, inputs, made : bytes of a layer's weights, of the inputs that its results have to themselves, and
        of its results
    own : bytes of the first layer's inputs that an engine may have made
    """

    products: Bools
    weights: Floats
    inputs: Floats
    made: Floats
    own: float


@compiled
def largest_share(
    product: bool, weights: float, inputs: float, brought: float, own: float
) -> float:  # pragma: no cover
    """The most of a layer that so many bytes from outside, and own inputs, allow."""
    available = brought + min(own, inputs)
    if not product:
        share = min(1.0, available / max(weights + inputs, 1e-300))
        return min(share, brought / weights) if weights > 0.0 else share
    # t bytes of weights leave `available - t` of inputs, which rises up to half of what is available
    taken = min(max(available / 2, available - inputs), min(weights, brought))
    return min(1.0, taken * min(available - taken, inputs) / (weights * inputs))


@compiled
def most_earned(
    chain: Chain, worth: Floats, own_price: Floats, port: float, cells: int, parts: int, rounded: bool
) -> Any:  # pragma: no cover
    """The most that an engine earns with so many cells of bytes, or fewer than one more where they round.

    Parameters
    ----------
    chain : the layers
    worth, own_price : what all of a layer earns, and what all results of a layer cost as own ones
    port : bytes that an engine is brought at most
    cells, parts : of bytes, and of own results of a layer
    rounded : whether an engine may have anything within a cell
    """
    cell, more = port / cells, 1 if rounded else 0
    nothing = -1e300
    best = np.full((parts + 1, cells + 1), nothing)
    best[0, 0] = 0.0
    places = np.empty((parts + 1, cells + 1), dtype=np.int64)
    gains = np.empty((parts + 1, cells + 1))
    states, step = 1, 0.0
    for layer in range(len(chain.weights)):
        product, weights, inputs = chain.products[layer], chain.weights[layer], chain.inputs[layer]
        # of the first layer the only state has all own inputs that there are
        least_own = chain.own if layer == 0 else 0.0
        width = largest_share(product, weights, inputs, port, least_own + step * parts) / parts
        for state in range(states):
            for brought in range(cells + 1):
                coming, own = min(port, (brought + more) * cell), least_own + state * step
                share = largest_share(product, weights, inputs, coming, own)
                place = share / max(width, 1e-300)
                places[state, brought] = min(parts, int(place + 1 - _TINY) if rounded else int(place + _TINY))
                gains[state, brought] = worth[layer] * share
        then = np.full((parts + 1, cells + 1), nothing)
        for state in range(states):
            for before in range(cells + 1):
                value = best[state, before]
                # more own results, or fewer bytes, that earned as much lead to all that this does
                if value <= nothing or (state + 1 < states and best[state + 1, before] >= value):
                    continue
                if before > 0 and best[state, before - 1] >= value:
                    continue
                for brought in range(cells + 1 - before):
                    at, earned = places[state, brought], value + gains[state, brought]
                    if earned > then[at, before + brought]:
                        then[at, before + brought] = earned
        # own results that an engine does without cost nothing
        for at in range(parts, -1, -1):
            price = own_price[layer] * width * max(0, at - more)
            for brought in range(cells + 1):
                if at < parts:
                    then[at, brought] = max(then[at, brought], then[at + 1, brought])
                best[at, brought] = then[at, brought] - price
        states, step = parts + 1, width * chain.made[layer]
    most = np.full(cells + 1, nothing)
    for at in range(parts + 1):
        for brought in range(cells + 1):
            most[brought] = max(most[brought], best[at, brought])
    return most
