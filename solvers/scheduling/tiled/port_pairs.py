"""Whether ports can bring engines what they need for a layer and for the one that reads its results.

Of layer 0, whose inputs come from DRAM, an engine has parts ``a`` of the weights and ``b`` of the inputs;
``q = a b``.  A result that it finishes has all its multiplications on the engine, at most a part ``q`` of
the ``R`` bytes of results, or the engine was sent an unfinished sum, whose bytes are ``S / R`` times the
result's.  Only such results are own inputs of layer 1.  So
``y = least(a W + b I) + a' W' + max(0, b' I' - q R)`` bytes pass its port, at most ``Y``, and of each sum
sent for layer 0 a part ``rho = 1 - R / S`` comes on top.

For prices ``alpha + beta = 1`` of shares and ``nu`` of bytes, ``phi - theta s <= k a b`` of
`tilewright.solvers.scheduling.tiled.port_shares` holds in both layers, with ``theta = nu rho / alpha`` and
``theta' = nu / beta``.  If ``alpha k q + beta k' a' b' - nu y`` is at most ``M`` on every engine, the sum
over the engines is ``1 <= E M + nu (E Y - other bytes)``.  Where that fails, no plan has such ports.

``M`` is taken over rectangles of ``q`` and of the bytes for layer 1.  The largest ``a' b'`` rises with both,
so each rectangle has its shares at the upper corner and its bytes at the lower one, which errs upwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.copies import SharedLayer
from tilewright.solvers.scheduling.tiled.port_shares import ROUNDING, least_coming, most_share

CELLS = 240
"""Rectangles along each side."""

SHARE_PRICES = (0.005, 0.01, 0.02, 0.05, 0.15, 0.3, 0.5, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Values of ``alpha`` that are tried; any choice is valid."""

BYTE_PRICES = (0.8, 0.95, 0.985)
"""Values of ``nu`` that are tried, as parts of one over all bytes; any choice is valid."""


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
    maker, reader = pair.maker, pair.reader
    room = engines * port - others
    if room <= 0:
        return False
    weights, inputs = float(maker.weights), float(maker.inputs)
    owned = np.linspace(0.0, float(most_share(weights, inputs, np.array(port)).clip(0.0, 1.0)), CELLS + 1)
    brought = np.linspace(0.0, port, CELLS + 1)
    passing = least_coming(weights, inputs, owned[:-1])[:, None] + brought[:-1]
    allowed = passing <= port * (1 + ROUNDING)
    share = owned[1:, None]
    later = reader_share(reader, brought[1:], np.minimum(share * pair.made, reader.inputs))
    for first in SHARE_PRICES:
        for part in BYTE_PRICES:
            price = part / room
            earned = first * sums_factor(price * pair.charged / first) * share
            earned = earned + (1 - first) * sums_factor(price * reader.sums / (1 - first)) * later
            most = float(np.max(earned - price * passing, where=allowed, initial=0.0))
            if (engines * most + part) * (1 + ROUNDING) < 1:
                return False
    return True


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
