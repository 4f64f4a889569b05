"""Windows of many nests at once: `tilewright.formulation.mapping.windows` over arrays of tile sizes.

One array element is one nest; sizes are integers in float64.  Where at most one loop of an axis is spread
nothing can coincide, and where both loops of an axis are spread at even distances a closed form counts what
does; the other nests, each different one once, are left to the scalar functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from itertools import product as combinations

import numpy as np

from tilewright.formulation.mapping import windows
from tilewright.formulation.mapping.piece_arrays import (
    Pieces,
    Shared,
    cut,
    distinct_sums,
    divided,
    paired_cut,
)
from tilewright.foundation.arrays import Bools, Floats, Indices, Int64s

Chain = Sequence[Floats]
Flags = tuple[bool, ...]


def fetched(
    sizes: Sequence[Chain], kinds: tuple[str, ...], strides: tuple[int, ...], shared: Shared | None = None
) -> Floats:
    """Elements along an axis over all steps; see the scalar function.

    Parameters
    ----------
    sizes : per loop of the axis, its chain of tile sizes, each of shape (nests,)
    kinds, strides : as for the scalar function
    shared : pieces of chains, as for `cut`
    """
    # The closed form counts coincidences of two loops whose instances side by side are their innermost cuts.
    simple = len(sizes) == 2 and all(re.fullmatch("[^s]*s*", kind) for kind in kinds)
    spread = [_spread(chain, kind) for chain, kind in zip(sizes, kinds, strict=True)]
    # With at most one spread loop no two tiles coincide.
    known = np.add.reduce([extents.astype(np.int64) for extents in spread]) <= 1
    if simple:
        known |= np.logical_and.reduce([_even(c, kind) for c, kind in zip(sizes, kinds, strict=True)])
    still = tuple(kind.replace(">", "t") for kind in kinds)
    if still == kinds:
        total = _whole(sizes, kinds, strides, simple, shared)
    else:
        slid = _slid(sizes, kinds, strides, simple, shared)
        # Where a loop inside the sliding one moves the tile too, nothing is left in place: each tile is
        # fetched whole.
        jumps = np.logical_or.reduce([_jumps(chain, kind) for chain, kind in zip(sizes, kinds, strict=True)])
        total = np.where(jumps, _whole(sizes, still, strides, simple, shared), slid) if jumps.any() else slid
    if not known.all():
        # What has no closed form is rare, and followed piece by piece.
        rest = [[size[~known].astype(np.int64) for size in chain] for chain in sizes]
        total[~known] = _followed(rest, kinds, strides)
    return total


def distinct(shape: tuple[int, ...], values: Sequence[Floats]) -> Floats:
    """How many different sums progressions have; see the scalar function."""
    loops: list[tuple[Floats, Floats]] = []
    ones = np.ones_like(values[0])
    odd = np.zeros(len(ones), dtype=np.bool_)
    given = iter(zip(values[::2], values[1::2], strict=True))
    for count in shape:
        many, step = ones, ones
        for outer, distance in reversed([next(given) for _ in range(count)]):
            # Two progressions are one where the outer steps on by the whole length of the inner one.
            odd |= (many > 1) & (outer > 1) & (distance != many * step)
            step = np.where(many == 1, distance, step)
            many = many * outer
        loops.append((many, step))
    spread = np.add.reduce([(many > 1).astype(np.int64) for many, _ in loops])
    if len(loops) == 2:
        (m, a), (n, b) = loops
        total = distinct_sums(m, a, n, b)
    else:
        odd = np.ones_like(odd)
        total = ones
    plain = np.multiply.reduce([many for many, _ in loops])
    result = np.where(spread <= 1, plain, total).astype(np.float64)
    rest = odd & (spread > 1)
    if rest.any():
        # Many nests come to the same few rows; each is counted once.
        rows, place = _different([value[rest].astype(np.int64) for value in values])
        result[rest] = np.array([windows.distinct(shape, row) for row in rows], dtype=np.float64)[place]
    return result


def _followed(sizes: Sequence[Sequence[Int64s]], kinds: Sequence[str], strides: tuple[int, ...]) -> Floats:
    """The scalar function's values: every loop's different chains once, then what differs of all together."""
    numbers: list[Int64s] = []
    steps: list[list[windows.Steps]] = []
    for chain, kind, stride in zip(sizes, kinds, strides, strict=True):
        rows, place = _different(chain)
        number_of: dict[windows.Steps, int] = {}
        each = [number_of.setdefault(windows.steps(row, kind, stride), len(number_of)) for row in rows]
        numbers.append(np.array(each)[place])
        steps.append(list(number_of))
    rows, place = _different(numbers)
    counts = [
        windows.together([own[at] for own, at in zip(steps, row, strict=True)], strides) for row in rows
    ]
    return np.array(counts, dtype=np.float64)[place]


def _different(columns: Sequence[Int64s]) -> tuple[list[tuple[int, ...]], Indices]:
    """The different rows of some columns, and which of them every row is."""
    place = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Renumbered after every column, so that the mixed key stays far below 2^63.
        _, place = np.unique(place * (int(column.max()) + 1) + column, return_inverse=True)
    _, first = np.unique(place, return_index=True)
    rows = [tuple(row) for row in np.stack([column[first] for column in columns], axis=1).tolist()]
    return rows, place


def _spread(chain: Chain, kind: str) -> Bools:
    """Where a loop has several pieces side by side."""
    result = np.zeros(len(chain[0]), dtype=np.bool_)
    for (outer, inner), each in zip(pairwise(chain), kind, strict=True):
        if each == "s":
            result |= inner < outer
    return result


def _even(chain: Chain, kind: str) -> Bools:
    """Where a loop's whole pieces begin at even distances, and at most one smaller piece follows."""
    first = kind.find("s")
    result = np.ones(len(chain[0]), dtype=np.bool_)
    for outer, tile in pairwise(chain[first:-1] if first >= 0 else []):
        result &= (tile >= outer) | (divided(tile, chain[-1])[1] == 0)
    return result


def _jumps(chain: Chain, kind: str) -> Bools:
    """Where a loop in time inside the one that would slide moves the tile."""
    place = kind.find(">")
    result = np.zeros(len(chain[0]), dtype=np.bool_)
    if place >= 0:
        for (outer, inner), each in list(zip(pairwise(chain), kind, strict=True))[place + 1 :]:
            if each == "t":
                result |= inner < outer
    return result


def _split(chain: Chain, kind: str, at: int, shared: Shared | None) -> tuple[Pieces, Chain, Flags]:
    """The pieces before a cut, and the tiles and flags of what follows."""
    flags = tuple(each != "-" for each in kind)
    return cut(chain[: at + 1], flags[:at], shared), chain[at + 1 :], flags[at:]


def _sides(kind: str, simple: bool) -> int:
    """Where the part of a chain begins whose pieces may coincide with others'."""
    return kind.find("s") if simple and "s" in kind else len(kind)


def _whole(
    sizes: Sequence[Chain], kinds: Sequence[str], strides: Sequence[int], simple: bool, shared: Shared | None
) -> Floats:
    """Every tile is fetched whole.

    Parameters
    ----------
    sizes, kinds, strides, shared : as for `fetched`
    simple : whether the closed form counts what coincides
    """
    total = np.zeros(len(sizes[0][0]))
    for many, inner in _side_by_side(sizes, kinds, simple, shared):
        total += many * _combined(inner, strides, simple)[0]
    return total


def _side_by_side(
    sizes: Sequence[Chain], kinds: Sequence[str], simple: bool, shared: Shared | None
) -> Iterator[tuple[Floats | int, list[Pieces]]]:
    """Per way to choose a piece of every loop in time: how many such there are, and the pieces inside them.

    Parameters
    ----------
    sizes, kinds, shared : as for `fetched`
    simple : whether the closed form counts what coincides
    """
    parts = [
        _split(chain, kind, _sides(kind, simple), shared) for chain, kind in zip(sizes, kinds, strict=True)
    ]
    for outer in combinations(*(pieces for pieces, _, _ in parts)):
        inner = [
            cut([size, *tiles], flags) for (size, _), (_, tiles, flags) in zip(outer, parts, strict=True)
        ]
        yield np.multiply.reduce([number for _, number in outer]), inner


def _combined(
    inner: Sequence[Pieces], strides: Sequence[int], simple: bool, most: Floats | None = None
) -> tuple[Floats, Floats]:
    """Elements in the different tiles side by side: whole, and at most ``most`` of each."""
    whole = np.zeros(len(inner[0][0][0]))
    capped = np.zeros_like(whole)
    for places in combinations(*(range(len(pieces)) for pieces in inner)):
        chosen = [pieces[place] for pieces, place in zip(inner, places, strict=True)]
        size = _extent([size for size, _ in chosen], strides)
        count = _count(inner, places, strides, simple)
        whole += count * size
        if most is not None:
            capped += count * np.minimum(size, most)
    return whole, capped


def _extent(sizes: Sequence[Floats], strides: Sequence[int]) -> Floats:
    return np.asarray(
        1 + np.add.reduce([stride * (size - 1) for size, stride in zip(sizes, strides, strict=True)])
    )


def _count(inner: Sequence[Pieces], places: Sequence[int], strides: Sequence[int], simple: bool) -> Floats:
    """Different tiles of chosen sizes; the first of a loop's pieces are whole, the others left over.

    A left-over piece with a whole one may coincide with a whole one with a left-over piece; that is taken off
    the former.
    """
    chosen = [pieces[place] for pieces, place in zip(inner, places, strict=True)]
    if not simple or places[1] > 0:
        return np.asarray(np.multiply.reduce([many for _, many in chosen]))
    (x, m), (y, n) = chosen
    a, b = strides
    if places[0] == 0:
        return distinct_sums(m, x * a, n, y * b)
    (x, m), left = inner[0][0], chosen[0]
    count = left[1] * n
    for rest, times in inner[1][1:]:
        # Starts coincide where both loops have moved by the same multiple of the least common one.
        alike = np.flatnonzero(((x - left[0]) * a == (y - rest) * b) & (left[1] * times > 0))
        first, second = x[alike] * a, y[alike] * b
        common = np.gcd(first.astype(np.int64), second.astype(np.int64))
        same = np.minimum(divided(m[alike] * common, second)[0], divided(n[alike] * common, first)[0])
        count[alike] -= left[1][alike] * times[alike] * same
    return count


def _slid(
    sizes: Sequence[Chain], kinds: Sequence[str], strides: Sequence[int], simple: bool, shared: Shared | None
) -> Floats:
    """One loop slides the window over each of its pieces.

    Parameters
    ----------
    sizes, kinds, strides, shared : as for `fetched`
    simple : whether the closed form counts what coincides
    """
    # The sliding loop comes first; the formula below is written for that order.
    turn = sorted(range(len(kinds)), key=lambda i: ">" not in kinds[i])
    sizes, kinds, strides = [sizes[i] for i in turn], [kinds[i] for i in turn], [strides[i] for i in turn]
    pieces, inside, flags = _split(sizes[0], kinds[0], kinds[0].index(">"), shared)
    step, tiles, flags = inside[0], inside[1:], flags[1:]
    move = step * strides[0]
    total = np.zeros(len(step))
    for many, second in _side_by_side(sizes[1:], kinds[1:], simple, shared):
        first, again = _combined([cut([step, *tiles], flags), *second], strides, simple, move)
        for size, times in pieces:
            # A piece is swept in whole steps, of which the first fetches all and the others what is new, and
            # a smaller last one.
            whole, rest = divided(size, step)
            sweep = (whole > 0) * (first + (whole - 1) * again)
            started, left = (whole > 0) * step, (rest > 0).astype(np.float64)
            # The last step's pieces know what the step before left in place.
            last = paired_cut(np.maximum(rest, 1), started, left, tiles, flags)
            inner = [[(now, number) for now, _, number in last], *second]
            for places in combinations(*(range(len(choices)) for choices in inner)):
                now, before, _ = last[places[0]]
                chosen = [now, *(choices[at][0] for choices, at in zip(second, places[1:], strict=True))]
                extent = _extent(chosen, strides)
                # A piece that was longer before reaches further, so less of the next one is new.
                missing = np.where(before > 0, np.maximum(0, move - (before - now) * strides[0]), extent)
                count = _count(inner, places, strides, simple)
                sweep = sweep + count * np.minimum(extent, missing)
            total += many * times * sweep
    return total
