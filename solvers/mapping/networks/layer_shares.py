"""The part of a network's time that a layer has."""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.search import LayerResult

_UNUSED = 0.02
"""The part of its time that a search may leave which ends for want of more."""


def is_spent(limits: Limits, share: Limits) -> bool:
    """Whether the time of a search is over, but for what solvers leave of their share of it."""
    remaining = limits.remaining
    return remaining is not None and remaining <= _UNUSED * (share.seconds or 0.0)


def after(share: Limits, earlier: LayerResult, limits: Limits) -> Limits:
    """A share of the time of a search that goes on: seconds count from the first one's beginning.

    It takes pains only if it gets further than before: at least twice as long, if so much is left.
    """
    remaining = limits.remaining
    if share.seconds is None or remaining is None:
        return share
    seconds = max(share.seconds, min(remaining, 2 * earlier.wall_seconds))
    return replace(
        share, seconds=seconds + earlier.wall_seconds, started=share.started - earlier.wall_seconds
    )


def share_of_layer(limits: Limits, left: int, workers: int = 1) -> Limits:
    """Limits of one search of several that counts from now.

    Parameters
    ----------
    left : searches that have not begun, this one included
    workers : searches that run at the same time; they share time and threads
    """
    remaining = limits.remaining
    in_parallel = min(workers, left)
    seconds = None if remaining is None else remaining / -(-left // in_parallel)
    threads = max(1, limits.threads // in_parallel)
    return replace(limits, seconds=seconds, started=limits.clock(), threads=threads)
