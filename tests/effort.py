"""How hard random tests try."""

from __future__ import annotations

import os

QUICK = 0.2
"""The part of its instances that each random test of the default run tries; slow runs try all."""


def effort(examples: int) -> int:
    """How many of a test's instances are tried, at least two of several: the first is often the simplest.

    ``TEST_EFFORT`` in the environment multiplies their number: with 8 a test tries eight times as many.
    """
    return max(min(examples, 2), round(examples * float(os.environ.get("TEST_EFFORT", QUICK))))
