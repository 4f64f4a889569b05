"""How hard random tests try."""

from __future__ import annotations

import os


def effort(examples: int) -> int:
    """Examples of one test: ``TEST_EFFORT=8`` in the environment tries eight times as many."""
    return max(1, round(examples * float(os.environ.get("TEST_EFFORT", "1"))))
