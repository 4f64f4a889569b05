"""Whether ports can bring engines what they need for a layer and for the one that reads its results.

Of layer 0, whose inputs come from DRAM, an engine has parts ``a`` of the weights and ``b`` of the inputs;
``q = a b``.  A result that it finishes has all its multiplications on the engine, at most a part ``q`` of
the ``R`` bytes of results, or the engine was sent an unfinished sum, whose bytes are ``S / R`` times the
result's.  Only such results are own inputs of layer 1: a part ``o <= q`` without sums, and since each result
is finished once, all these parts sum to 1 at most.  So
``y = least(a W + b I) + a' W' + max(0, b' I' - o R)`` bytes pass its port, at most ``Y``, and of each sum
sent for layer 0 a part ``rho = 1 - R / S`` comes on top.

For prices ``alpha + beta = 1`` of shares, ``nu`` of bytes and ``mu`` of own results,
``phi - theta s <= k a b`` of `tilewright.solvers.scheduling.tiled.port_shares` holds in both layers, with
``theta = nu rho / alpha`` and ``theta' = nu / beta``.  If ``alpha k q + beta k' a' b' - nu y - mu o`` is at
most ``M`` on every engine, the sum over the engines is ``1 <= E M + nu (E Y - other bytes) + mu``.  Where
that fails, no plan has such ports.  Any prices are valid; good ones are found by steps along one price after
the other.

For given ``o`` and bytes for layer 1 the least bytes for ``q`` are concave in it, so that the best ``q`` is
``o`` or the most that the port has room for, and more room errs upwards.  ``M`` is taken over rectangles of
``o`` and of the bytes for layer 1.  The largest ``a' b'`` rises with both, so each rectangle has its shares
at the upper corner and its bytes at the lower one, where the port has most room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.copies import SharedLayer
from tilewright.solvers.scheduling.tiled.port_shares import ROUNDING, least_coming, most_share

POINTS, CELLS = 60, 400
"""Points along each side at which prices are sought, and rectangles for those that are found."""

STARTS = ((0.1, 0.9, 0.1), (0.7, 0.9, 0.05), (3.0, 0.9, 0.01))
"""Prices from which steps begin: ``alpha / beta``, ``nu`` as a part of one over all bytes, and ``mu``."""

STEPS = (0.5, 0.25, 0.1, 0.04)
"""By how much more or less than itself a price is tried, the next where no step of one size gains."""

MOST_STEPS = 80
"""Prices that are tried from each start."""


@dataclass(frozen=True, slots=True)
class LayerPair:
    """A layer whose inputs come from DRAM, and one that reads its results.

    Parameters
    ----------
    maker, reader : the layers
    made : bytes of the maker's results
    """

    maker: SharedLayer
    reader: SharedLayer
    made: int

    @property
    def charged(self) -> float:
        """Bytes of the maker's unfinished sums, less what may be own inputs of the reader: ``rho S``."""
        return max(0.0, self.maker.sums - self.made)


def ports_suffice(pair: LayerPair, engines: int, port: float, others: float) -> bool:
    """Whether ports may bring enough; ``False`` is proven.

    Parameters
    ----------
    pair : the two layers
    engines : of the machine
    port : bytes that pass an engine's port at most
    others : bytes that pass some port besides those of the two layers
    """
    if engines * port <= others:
        return False
    near = Earned(pair, engines, port, others, POINTS, rectangles=False)
    prices = min((_cheapest(near.worth, start) for start in STARTS), key=near.worth)
    if near.worth(prices) >= 1:
        return True
    proven = Earned(pair, engines, port, others, CELLS, rectangles=True).worth(prices)
    return proven * (1 + ROUNDING) >= 1


class Earned:
    """What all engines earn at most at some prices.

    Parameters
    ----------
    pair, engines, port, others : as of `ports_suffice`
    cells : along each side
    rectangles : whether an engine may have anything within a cell, which proves; otherwise its corners alone
    """

    def __init__(
        self, pair: LayerPair, engines: int, port: float, others: float, cells: int, *, rectangles: bool
    ) -> None:
        maker, reader = pair.maker, pair.reader
        self._charged, self._sums, self._engines = pair.charged, float(reader.sums), engines
        self._room = engines * port - others
        weights, inputs = float(maker.weights), float(maker.inputs)

        def most(coming: Floats) -> Floats:
            return most_share(weights, inputs, coming).clip(0.0, 1.0)

        low, high = (slice(None, -1), slice(1, None)) if rectangles else (slice(None), slice(None))
        owned = np.linspace(0.0, float(most(np.array(port))), cells + 1)
        brought = np.linspace(0.0, port, cells + 1)
        self._owned, self._share = owned[low, None], owned[high, None]
        self._brought = brought[low]
        self._passing = least_coming(weights, inputs, owned[low])[:, None]
        self._fits = self._passing + self._brought <= port * (1 + ROUNDING)
        self._largest = most(port - brought[low])
        self._for_largest = least_coming(weights, inputs, self._largest)
        own = np.minimum(self._share * pair.made, reader.inputs)
        self._later = reader_share(reader, brought[high], own)

    def worth(self, prices: tuple[float, ...]) -> float:
        """``E M + nu (E Y - other bytes) + mu``, below 1 only where no plan has such ports.

        Parameters
        ----------
        prices : as one of `STARTS`
        """
        ratio, part, mu = prices
        alpha, beta, nu = ratio / (1 + ratio), 1 / (1 + ratio), part / self._room
        first = alpha * sums_factor(nu * self._charged / alpha)
        made = np.maximum(
            first * self._share - nu * self._passing, first * self._largest - nu * self._for_largest
        )
        earned = made - mu * self._owned - nu * self._brought
        earned += beta * sums_factor(nu * self._sums / beta) * self._later
        return self._engines * float(np.max(earned, where=self._fits, initial=0.0)) + part + mu


def _cheapest(worth: Callable[[tuple[float, ...]], float], start: tuple[float, ...]) -> tuple[float, ...]:
    """Where steps along one price after the other lead to, as long as they gain."""
    at, least, tried = start, worth(start), 1
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for which in range(len(start)):
                for factor in (1 + step, 1 / (1 + step)):
                    if tried == MOST_STEPS:
                        return at
                    other = tuple(price * factor if i == which else price for i, price in enumerate(at))
                    value, tried = worth(other), tried + 1
                    if value < least:
                        at, least, moved = other, value, True
                        break
    return at


def reader_share(layer: SharedLayer, brought: Floats, own: Floats) -> Floats:
    """The largest product of parts of weights and inputs, for so many bytes from outside and own inputs."""
    # t bytes of weights leave `available - t` of inputs, which rises up to half of what is available
    available = own + brought
    weights = np.minimum(
        np.maximum(available / 2, available - layer.inputs), np.minimum(layer.weights, brought)
    )
    parts: Floats = weights * np.minimum(available - weights, layer.inputs) / (layer.weights * layer.inputs)
    return parts


def sums_factor(worth: float) -> float:
    """``k`` where all unfinished sums together are worth so many layers."""
    return 1.0 if worth >= 1 else (1 + worth) ** 2 / (4 * max(worth, 1e-300))
