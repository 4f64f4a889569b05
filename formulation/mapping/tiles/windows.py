"""Elements fetched along a tensor axis that several loops move along: tiles that overlap, coincide or slide.

Every loop of the axis has a *chain* of tile sizes, the whole dimension first, and for every cut of the
chain a *kind*:

- ``t``: every piece counts by itself, one after the other (a loop in time),
- ``>``: the same, and the window slides from piece to piece; at most one cut of one chain,
- ``e``: every piece counts by itself (instances that each have their own access),
- ``s``: pieces stand side by side (instances at one time), and those with the same tile share an access,
- ``-``: the first piece, the largest, stands for all.

An element is counted once for every time step and every tile among those side by side; two tiles are the same
where they begin at the same element and end at the same one.  A window that slides fetches what the same
instance's tile of the step before does not hold; of instances with the same tile the one that misses most
is served.  A window slides only where no cut in time of its loop inside ``>`` has more than one piece.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from itertools import product as combinations
from math import prod

from tilewright.formulation.mapping.tiles.pieces import distinct_sums

Sizes = tuple[int, ...]
Place = tuple[int, int, int]
"""One instance's piece: its first iteration, its size, its size in the step before (0: none)."""
Profile = tuple[Place, ...]
"""The pieces that instances side by side have at one time, counted from the first of them."""

Steps = tuple[tuple[tuple[Profile, int], ...], int]
"""What stands side by side, in how many steps; and how far the window slides, or -1."""

_WHOLE = -1


def fetched(sizes: tuple[Sizes, ...], kinds: tuple[str, ...], strides: tuple[int, ...]) -> int:
    """Elements along an axis over all steps.

    Parameters
    ----------
    sizes : per loop of the axis, its chain of tile sizes, non-increasing
    kinds : per loop, the kind of every cut
    strides : elements along the axis that one iteration of each loop moves
    """
    loops = [steps(*loop) for loop in zip(sizes, kinds, strides, strict=True)]
    # At most one loop slides; the others have -1.
    move = max(step for _, step in loops)
    return sum(
        prod(many for _, many in chosen) * _at_once(tuple(profile for profile, _ in chosen), strides, move)
        for chosen in combinations(*(choices for choices, _ in loops))
    )


@lru_cache(maxsize=1 << 16)
def steps(sizes: Sizes, kinds: str, stride: int) -> Steps:
    """The steps of one loop; equal for chains that come to the same."""
    # The same chain with and without a loop inside the sliding one are different counts.
    kinds = settled(sizes, kinds)
    move = stride * sizes[kinds.index(">") + 1] if ">" in kinds else _WHOLE
    return tuple(sorted(profiles(sizes, kinds).items())), move


def settled(sizes: Sizes, kinds: str) -> str:
    """Kinds with ``>`` only where the window slides at these sizes."""
    place = kinds.find(">")
    if any(
        # A loop in time inside the sliding one moves the tile away, so nothing of the window is left.
        inner < outer and kind == "t"
        for (outer, inner), kind in zip(list(pairwise(sizes))[place + 1 :], kinds[place + 1 :], strict=True)
    ):
        return kinds.replace(">", "t")
    return kinds


def profiles(sizes: Sizes, kinds: str) -> dict[Profile, int]:
    """What stands side by side at each step of one loop's chain, and in how many steps."""
    counts: dict[Profile, int] = {((0, sizes[0], 0),): 1}
    for tile, kind in zip(sizes[1:], kinds, strict=True):
        inner: dict[Profile, int] = {}
        for profile, many in counts.items():
            if kind in "te>":
                for later, times in _one_by_one(profile, tile, kind == ">"):
                    inner[later] = inner.get(later, 0) + many * times
            else:
                combined = _combined(profile, tile, kind == "s")
                inner[combined] = inner.get(combined, 0) + many
        counts = inner
    return counts


def _one_by_one(profile: Profile, tile: int, slides: bool) -> list[tuple[Profile, int]]:
    """The steps of a loop: those in which every instance's piece is the same are one."""
    # Steps between two changes are alike: the first one fetches all, later ones slide, and pieces that end
    # drop out.
    changes = {0} | ({1} if slides else set())
    changes |= {turn for _, size, _ in profile for turn in (size // tile, -(-size // tile))}
    result: list[tuple[Profile, int]] = []
    for now, until in pairwise(sorted(changes)):
        passed = now * tile
        rows = [
            (
                start,
                min(tile, size - passed),
                (tile if now else 0) if slides else min(tile, max(0, before - passed)),
            )
            for start, size, before in profile
            if size > passed
        ]
        first = min(start for start, _, _ in rows)
        result.append((tuple((start - first, size, before) for start, size, before in rows), until - now))
    return result


def _combined(profile: Profile, tile: int, every: bool) -> Profile:
    """Pieces of every piece, next to each other: all of them, or the first."""
    return tuple(
        (start + passed, min(tile, size - passed), min(tile, max(0, before - passed)))
        for start, size, before in profile
        for passed in range(0, size if every else 1, tile)
    )


@lru_cache(maxsize=1 << 16)
def _at_once(together: tuple[Profile, ...], strides: tuple[int, ...], move: int) -> int:
    """Elements fetched in one step: the bits of a number are the first elements of equally long tiles."""
    counts: dict[tuple[int, int], int] = {(1, _WHOLE): 1}
    for profile, stride in zip(together, strides, strict=True):
        inner: dict[tuple[int, int], int] = {}
        for (extent, most), firsts in counts.items():
            for start, size, before in profile:
                # Without a tile before it the whole window is missing.
                missing = max(0, move - (before - size) * stride) if before else most
                key = extent + (size - 1) * stride, missing
                # Sets of first elements are bits of one integer: a shift adds a loop's offset to all of them
                # at once.
                inner[key] = inner.get(key, 0) | firsts << start * stride
        counts = inner
    total = 0
    served: dict[int, int] = {}
    fetches = [
        (extent if missing == _WHOLE else min(extent, missing), extent, firsts)
        for (extent, missing), firsts in counts.items()
    ]
    # Of equal tiles that instances share, the one that misses most pays for all.
    for amount, extent, firsts in sorted(fetches, reverse=True):
        before_it = served.get(extent, 0)
        total += amount * (firsts & ~before_it).bit_count()
        served[extent] = before_it | firsts
    return total


def distinct(shape: tuple[int, ...], values: Sizes) -> int:
    """How many different sums there are of one member of each of several progressions from 0.

    Parameters
    ----------
    shape : how many progressions each loop has, the outer ones first; their own sums all differ
    values : number of members and step of every progression
    """
    loops: list[list[tuple[int, int]]] = []
    given = iter(zip(values[::2], values[1::2], strict=True))
    for count in shape:
        joined: list[tuple[int, int]] = []
        for many, step in reversed([next(given) for _ in range(count)]):
            if many == 1:
                continue
            # An outer progression that continues the inner one without a gap is the same one, only longer.
            if joined and step == joined[-1][0] * joined[-1][1]:
                joined[-1] = joined[-1][0] * many, joined[-1][1]
            else:
                joined.append((many, step))
        if joined:
            loops.append(joined)
    if len(loops) == 2 and all(len(joined) == 1 for joined in loops):
        ((m, a),), ((n, b),) = loops
        return distinct_sums(m, a, n, b)
    if len(loops) <= 1:
        result = 1
        for many, _ in loops[0] if loops else []:
            result *= many
        return result
    return _sums(tuple(sorted(pair for joined in loops for pair in joined)))


@lru_cache(maxsize=1 << 16)
def _sums(progressions: tuple[tuple[int, int], ...]) -> int:
    sums = 1
    for many, step in progressions:
        done = 1
        while done < many:  # the first ``done`` members are in
            more = min(done, many - done)
            # Doubling adds a progression in logarithmically many shifts.
            sums |= sums << more * step
            done += more
    return sums.bit_count()
