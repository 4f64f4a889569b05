"""What must enter all engines that share a layer if no engine's port brings more than so many bytes.

Per layer, ``W`` are the bytes of its weights, ``I`` of the inputs that its results meet one by one, and ``S``
of its unfinished sums (`tilewright.solvers.scheduling.tiled.copies`).  An engine with parts ``a``, ``b`` and
``c`` of them does a share ``phi <= sqrt(a b c)`` of the layer.  Of its inputs it has made ``x`` bytes itself;
``y >= a W + b I - x`` bytes of weights and inputs come through its port, at most ``Y``.  All engines together
are sent ``s = S (c - phi)`` bytes of unfinished sums, each counted as ``rho``.

- Without own inputs the product ``a b`` is at most ``p(y)``, convex until all is there: ``y**2 / 4 W I``
  while ``y`` is at most twice the smaller of ``W`` and ``I``.  So ``p(y) <= A y`` where ``A = p(Y) / Y``.
- Own inputs add.  For a given ``a`` both sides of ``a b <= A y + B x`` are linear in the inputs from outside
  and in the own ones.  So it holds everywhere if it holds where all inputs are own, and where the port is
  full: with any larger ``A``, and ``B = a (1 - A W) / I`` for the largest part ``a = Y / W`` of the weights.
  ``A = 1 / W``, which is never less than ``p(Y) / Y``, needs no ``B``, and says that all weights enter.
  Where the port brings all of them, one engine may do all with its own inputs, and no ``A`` says more.
- Sums add: from ``phi**2 <= a b (phi + s / S)`` follows ``phi - A' rho s <= k a b`` with
  ``k = (1 + A' rho S)**2 / (4 A' rho S)`` if ``A' rho S < 1``, and ``k = 1`` otherwise.

With ``A' = k A`` that is ``phi <= A' (y + rho s) + k B x``.  Shares sum to 1, own inputs to ``I`` at most, so
all ``y + rho s`` sum to at least ``(1 - k B I) / A'``, for every ``A``; the largest is taken.  An engine that
has no time for more than a share counts as if its port brought no more than that share needs.
"""

from __future__ import annotations

import numpy as np

from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.copies import SharedLayer

STEEPER = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Values of ``A`` that are tried, over the least; any choice is valid."""

ROUNDING = 1e-9
"""Part of a result that is given away for the rounding of floats."""


def least_entering(layer: SharedLayer, port: Floats, share: Floats, sums: float) -> Floats:
    """Bytes of weights and inputs that enter all engines at least, and of unfinished sums, weighted.

    Parameters
    ----------
    layer : that engines share
    port : bytes that pass an engine's port at most
    share : of the layer that an engine has time for at most
    sums : what a byte of an unfinished sum counts
    """
    weights, inputs = float(layer.weights), float(layer.inputs)
    if not weights or not inputs:
        return np.full(len(port), weights)
    most = np.minimum(port, least_coming(weights, inputs, np.minimum(share, 1.0)))
    slope = most_share(weights, inputs, most) / most
    price = sums * layer.sums
    if layer.outside:
        return _with_sums(slope, price)[0] * (1 - ROUNDING)
    least = np.zeros_like(most)
    for steeper in (*(slope * factor for factor in STEEPER), np.full_like(slope, 1 / weights)):
        free, factor = _with_sums(steeper, price)
        own = most / weights * (1 - steeper * weights)
        # (1 - k B I) / A'
        least = np.maximum(least, free * (1 - factor * np.maximum(0.0, own)))
    return least * (1 - ROUNDING)


def least_coming(weights: float, inputs: float, share: Floats) -> Floats:
    """The least bytes of weights and inputs for a share, all of them from outside."""
    low, high = min(weights, inputs), max(weights, inputs)
    least: Floats = np.where(share * high <= low, 2 * np.sqrt(low * high * share), low + share * high)
    return least


def most_share(weights: float, inputs: float, coming: Floats) -> Floats:
    """The largest product of parts for so many bytes: what `least_coming` inverts."""
    low, high = min(weights, inputs), max(weights, inputs)
    largest: Floats = np.where(coming <= 2 * low, coming**2 / (4 * low * high), (coming - low) / high)
    return largest


def _with_sums(slope: Floats, price: float) -> tuple[Floats, Floats]:
    """``1 / (k A)`` and ``k`` for each ``A``: with ``u = sqrt(A rho S)`` below 1, ``k = 1 / (u (2 - u))``."""
    root = np.minimum(1.0, np.sqrt(slope * price))
    factor = 1 / np.maximum(root * (2 - root), 1e-300)
    return 1 / (factor * slope), factor
