"""Elements of windows that overlap, coincide and slide, against running their loops one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from unittest import mock

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.mapping.tiles import window_arrays, windows
from tilewright.solvers.mapping.compiled.program import BOUNDS

Case = tuple[tuple[tuple[int, ...], ...], tuple[str, ...], tuple[int, ...]]


@pytest.fixture(scope="module", autouse=True)
def _machine_code() -> None:
    """Compiled before anything is counted: until then the scalar function counts."""
    BOUNDS.calls()


@st.composite
def chain(draw: st.DrawFn, kinds: str, most: int) -> tuple[tuple[int, ...], str]:
    """Tile sizes of one loop and what each of its cuts does."""
    sizes = [draw(st.integers(1, most))]
    for _ in kinds:
        # divisors, too: perfect tiles have closed forms of their own
        tiles = st.one_of(
            st.integers(1, sizes[-1]),
            st.sampled_from([d for d in range(1, sizes[-1] + 1) if not sizes[-1] % d]),
        )
        sizes.append(draw(tiles))
    return tuple(sizes), kinds


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Two or three loops; one of them may slide."""
    count = draw(st.sampled_from([2, 2, 2, 3]))
    patterns = [
        draw(st.sampled_from(["", "s", "ts", "tss", "sts", "-s", "test", "set-s", "sss"]))
        for _ in range(count)
    ]
    place = draw(st.integers(0, count))
    if place < count:
        at = draw(st.integers(0, len(patterns[place])))
        patterns[place] = patterns[place][:at] + ">" + patterns[place][at:]
    chains = [draw(chain(pattern, 12 if count == 2 else 6)) for pattern in patterns]
    strides = draw(st.tuples(*[st.integers(1, 4)] * count))
    return tuple(sizes for sizes, _ in chains), tuple(kinds for _, kinds in chains), strides


def walked(sizes: Sequence[Sequence[int]], kinds: Sequence[str], strides: Sequence[int]) -> int:
    """Every combination of loop indices: who has which tile when, and which of it is new."""
    tiles: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, int]]] = defaultdict(dict)
    cuts = [(loop, n) for loop, own in enumerate(kinds) for n in range(len(own))]
    ranges = [
        range(1 if kinds[loop][n] == "-" else -(-sizes[loop][n] // sizes[loop][n + 1])) for loop, n in cuts
    ]
    mover = next((i for i, (loop, n) in enumerate(cuts) if kinds[loop][n] == ">"), None)
    for indices in product(*ranges):
        first, left = [0] * len(sizes), [own[0] for own in sizes]
        for (loop, n), index in zip(cuts, indices, strict=True):
            tile = sizes[loop][n + 1]
            first[loop] += index * tile
            left[loop] = min(tile, left[loop] - index * tile)
        if min(left) <= 0:
            continue
        low = sum(a * start for a, start in zip(strides, first, strict=True))
        high = low + sum(a * (size - 1) for a, size in zip(strides, left, strict=True))
        apart = tuple(i for i, (loop, n) in zip(indices, cuts, strict=True) if kinds[loop][n] != "s")
        beside = tuple(i for i, (loop, n) in zip(indices, cuts, strict=True) if kinds[loop][n] == "s")
        tiles[apart][beside] = low, high
    apart_cuts = [i for i, (loop, n) in enumerate(cuts) if kinds[loop][n] != "s"]
    total = 0
    for time, here in tiles.items():
        fetches: dict[tuple[int, int], int] = defaultdict(int)
        before: dict[tuple[int, ...], tuple[int, int]] = {}
        if mover is not None and time[apart_cuts.index(mover)]:
            at = apart_cuts.index(mover)
            before = tiles.get((*time[:at], time[at] - 1, *time[at + 1 :]), {})
        for beside, (low, high) in here.items():
            old = range(before[beside][0], before[beside][1] + 1) if beside in before else range(0)
            new = sum(element not in old for element in range(low, high + 1))
            fetches[low, high] = max(fetches[low, high], new)
        total += sum(fetches.values())
    return total


@settings(max_examples=effort(120))
@given(cases())
def test_windows_are_those_of_their_loops_run_one_by_one(case: Case) -> None:
    """Of tiles at one time equal ones count once; a sliding window counts what the step before lacks."""
    sizes, kinds, strides = case
    settled = tuple(windows.settled(own, kind) for own, kind in zip(sizes, kinds, strict=True))
    assert windows.fetched(sizes, kinds, strides) == walked(sizes, settled, strides)


@settings(max_examples=effort(120))
@given(st.data())
def test_windows_of_many_nests_at_once(data: st.DataObject) -> None:
    """Arrays of nests fetch as many elements as each nest alone."""
    sizes, kinds, strides = data.draw(cases())
    most = 40 if len(kinds) == 2 else 12
    others = [[data.draw(chain(own, most))[0] for own in kinds] for _ in range(2)]
    nests = [sizes, *(tuple(other) for other in others)]
    columns = [
        [np.array(tiles, dtype=np.float64) for tiles in zip(*chains, strict=True)]
        for chains in zip(*nests, strict=True)
    ]
    alone = [windows.fetched(nest, kinds, strides) for nest in nests]
    room = data.draw(st.sampled_from([1, 4, 256]))
    with mock.patch.object(window_arrays, "_ROOM", room):
        assert window_arrays.fetched(columns, kinds, strides).tolist() == alone
    with mock.patch.object(window_arrays, "is_ready", return_value=False):
        assert window_arrays.fetched(columns, kinds, strides).tolist() == alone


def test_windows_of_very_long_axes() -> None:
    """What does not fit 64 bits is counted by the scalar function."""
    sizes, kinds, strides = ((1 << 24, 3, 1), (1 << 22, 1)), ("ts", "t"), (1 << 20, 1)
    columns = [[np.array([tile, tile], dtype=np.float64) for tile in own] for own in sizes]
    count = windows.fetched(sizes, kinds, strides)
    assert count == 1 << 46
    assert window_arrays.fetched(columns, kinds, strides).tolist() == [count] * 2


progressions = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=3)


@settings(max_examples=effort(100))
@given(st.lists(progressions, min_size=1, max_size=3), st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_sums_of_progressions_are_counted_by_their_values(
    loops: list[list[tuple[int, int]]], last: list[int]
) -> None:
    """Progressions as nested loops make them, even distances and others; alone and in arrays."""
    shape, values = tuple(len(loop) for loop in loops), []
    sums = {0}
    for loop, step in zip(loops, last, strict=False):
        nested = []
        for many, gap in loop:  # innermost first; a gap of 1 leaves no iterations between
            nested.append((many, step))
            step *= many * gap
        for many, distance in nested:
            sums = {total + i * distance for total in sums for i in range(many)}
        values += [number for pair in reversed(nested) for number in pair]
    assert windows.distinct(shape, tuple(values)) == len(sums)
    if values:
        counts = window_arrays.distinct(
            shape, [np.array([value, value], dtype=np.float64) for value in values]
        )
        assert counts.tolist() == [len(sums)] * 2
