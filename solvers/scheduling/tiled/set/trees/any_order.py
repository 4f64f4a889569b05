"""How many tiles each child of an S cut may get, over all orders of the children.

An allocation (`formulation/.../trees/allocation.py`) first rounds up the children that lose most by rounding
down; among equals the order decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

MOST = 200
"""Allocations beyond which none are listed."""


def allocations_in_any_order(times: Sequence[float], tiles: int) -> tuple[tuple[int, ...], ...] | None:
    """All allocations that some order of the children leads to; none where there are too few tiles, ``None``
    where there are more than `MOST`.

    Parameters
    ----------
    times : normalized processing times, above 0, with exact sums
    """
    if len(times) > tiles:
        return ()
    every = range(len(times))
    allocations = list(
        itertools.islice(_rounds(times, tuple(every), tiles, sum(times), (0,) * len(times)), MOST + 1)
    )
    return tuple(dict.fromkeys(allocations)) if len(allocations) <= MOST else None


def _rounds(
    times: Sequence[float], left: tuple[int, ...], tiles: int, work: float, given: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Allocations of the remaining tiles to the children that are not settled."""
    counts, lost = list(given), []
    for child in left:
        share = times[child] / work * tiles
        counts[child] = int(share)
        lost.append(counts[child] / share)
    spare = tiles - sum(counts[child] for child in left)
    if not left or spare == 0:
        yield tuple(counts)
        return
    border = sorted(lost)[spare - 1]
    first = tuple(child for child, rate in zip(left, lost, strict=True) if rate < border)
    equal = [child for child, rate in zip(left, lost, strict=True) if rate == border]
    for more in itertools.combinations(equal, spare - len(first)):
        raised = list(counts)
        for child in (*first, *more):
            raised[child] += 1
        settled = {*first, *more}
        yield from _rounds(
            times,
            tuple(child for child in left if child not in settled),
            tiles - sum(raised[child] for child in settled),
            work - sum(times[child] for child in settled),
            tuple(raised),
        )
