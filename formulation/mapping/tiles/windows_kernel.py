"""Windows of many nests as machine code: :func:`tilewright.formulation.mapping.tiles.windows.fetched`, row by
row.

What a loop has side by side at one step is kept as *runs*: pieces of one size at even distances.  A way to
take a run of every loop makes tiles of one extent; how many of them differ is known where at most two of the
runs have several pieces, and no other way makes tiles of that extent.  Other tiles are looked at one by one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled

_FIRST, _TIME, _EACH, _SLIDING, _BESIDE = range(5)
KINDS: Final = {"-": _FIRST, "t": _TIME, "e": _EACH, ">": _SLIDING, "s": _BESIDE}
"""Kinds of cuts by their names in :mod:`tilewright.formulation.mapping.tiles.windows`."""

_START, _DISTANCE, _NUMBER, _SIZE, _BEFORE = range(5)
_BEGIN, _END, _TIMES = range(3)
_EXTENT, _AMOUNT, _COUNT = range(3)
_TILE, _STAMP, _PAID = range(3)
_RUNS, _STEPS = range(2)
_UNKNOWN = -1  # for want of memory, or of a formula
_MANY = 16  # ways to take a run of every loop, from which on all tiles are looked at
_APART = 0x9E3779B1  # times this, neighbouring tiles lie apart
EXTENT_BITS: Final = 30
"""Of a tile's number; its first element has as many."""


class _Memory(NamedTuple):
    """What one row takes.

    Parameters
    ----------
    runs : of every run of pieces the first iteration, distance, number, size, and size in the step before (0:
        none)
    steps : of every step its first run, the end of its runs, and how often it comes
    used : how many runs and steps there are
    ways : of every way to take a run of each loop the tiles' extent, what each fetches, and how many differ
    tiles : per place of a table a tile, the stamp of the count that put it there, and what it fetches
    stamp : of the last count
    """

    runs: Int64s
    steps: Int64s
    used: Int64s
    ways: Int64s
    tiles: Int64s
    stamp: Int64s


@compiled
def fetched(
    first: int, sizes: Floats, cuts: Int64s, kinds: Int64s, strides: Int64s, room: int, totals: Floats
) -> Any:  # pragma: no cover
    """Write the elements along an axis over all steps, row by row; returns the row at which memory ended.

    Parameters
    ----------
    first : row to begin with
    sizes : tile sizes of one loop after the other, shape (tiles, rows)
    cuts : how many each loop has
    kinds : of all cuts
    strides : elements along the axis that one iteration of each loop moves
    room : how many runs, steps and ways there may be, and how many tiles
    totals : is overwritten, shape (rows,)
    """
    loops, rows = len(cuts), sizes.shape[1]
    memory = _Memory(
        np.empty((room, 5), dtype=np.int64),
        np.empty((room, 3), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.empty((room, 3), dtype=np.int64),
        np.zeros((2 * room, 3), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    tiles = np.zeros(len(sizes), dtype=np.int64)
    # Of every loop: where its runs and steps begin, which steps are its last ones, how far its window slides.
    begins = np.zeros((loops + 1, 2), dtype=np.int64)
    last = np.zeros((loops, 2), dtype=np.int64)
    moves = np.zeros(loops, dtype=np.int64)
    chosen, places = np.zeros(loops, dtype=np.int64), np.zeros(loops, dtype=np.int64)
    for row in range(first, rows):
        begin, same = 0, row > first
        for loop in range(loops):
            end = begin + cuts[loop] + 1
            for at in range(begin, end):
                size = int(sizes[at, row])
                same = same and tiles[at] == size
                tiles[at] = size
            if not same:  # this loop, or one before it in memory, is not that of the row before
                memory.used[:] = begins[loop]
                own = kinds[begin - loop : end - loop - 1]
                moves[loop] = strides[loop] * _slide(tiles[begin:end], own)
                last[loop, 0] = _listed(tiles[begin:end], own, moves[loop] > 0, memory)
                if last[loop, 0] == _UNKNOWN:
                    return row
                begins[loop + 1] = memory.used
                last[loop, 1] = memory.used[_STEPS]
            chosen[loop] = last[loop, 0]
            begin = end
        total, more = 0, True
        while more:
            times = 1
            for step in chosen:
                times *= memory.steps[step, _TIMES]
            at_once = _at_once(chosen, strides, moves.max(), places, memory)
            if at_once == _UNKNOWN:
                return row
            total += times * at_once
            more = _next(chosen, last)
        totals[row] = total
    return rows


@compiled
def _next(places: Int64s, borders: Int64s) -> bool:  # pragma: no cover
    """Go on to the next way to choose a place of every loop; whether there is one.

    Parameters
    ----------
    borders : first place of every loop, and the end of its places
    """
    for loop in range(len(places)):
        places[loop] += 1
        if places[loop] < borders[loop, 1]:
            return True
        places[loop] = borders[loop, 0]
    return False


@compiled
def _slide(tiles: Int64s, kinds: Int64s) -> Any:  # pragma: no cover
    """Iterations by which a loop slides its window; 0 where it does not, or another moves it away inside."""
    tile = 0
    for cut in range(len(kinds)):
        if kinds[cut] == _SLIDING:
            tile = tiles[cut + 1]
        elif kinds[cut] == _TIME and tiles[cut + 1] < tiles[cut]:
            tile = 0
    return tile


@compiled
def _listed(tiles: Int64s, kinds: Int64s, slides: bool, memory: _Memory) -> Any:  # pragma: no cover
    """List the steps of a loop behind those that are there; the first of them behind its last cut."""
    runs, steps, used = memory.runs, memory.steps, memory.used
    if used[_RUNS] >= len(runs) or used[_STEPS] >= len(steps):
        return _UNKNOWN
    runs[used[_RUNS]] = 0
    runs[used[_RUNS], _NUMBER], runs[used[_RUNS], _SIZE] = 1, tiles[0]
    first = used[_STEPS]
    used[_RUNS] += 1
    _add_step(used[_RUNS] - 1, 1, first, memory)
    for cut in range(len(kinds)):
        kind, tile, end = kinds[cut], tiles[cut + 1], used[_STEPS]
        if tile == tiles[cut]:
            continue
        for step in range(first, end):
            every = kind == _BESIDE
            if every or kind == _FIRST:
                fits = _cut_beside(step, tile, every, end, memory)
            else:
                fits = _cut_in_turn(step, tile, slides and kind == _SLIDING, end, memory)
            if not fits:
                return _UNKNOWN
        first = end
    return first


@compiled
def _add_run(
    start: int, distance: int, number: int, size: int, before: int, memory: _Memory
) -> None:  # pragma: no cover
    """One more run, for which there is memory; parameters are as for `_Memory`."""
    run = memory.runs[memory.used[_RUNS]]
    run[_START], run[_DISTANCE], run[_NUMBER] = start, distance if number > 1 else 0, number
    run[_SIZE], run[_BEFORE] = size, before
    memory.used[_RUNS] += 1


@compiled
def _add_step(begin: int, times: int, since: int, memory: _Memory) -> None:  # pragma: no cover
    """The runs from ``begin`` on are one more step, or as those of one that was added since."""
    runs, steps, used = memory.runs, memory.steps, memory.used
    end = used[_RUNS]
    for step in range(since, used[_STEPS]):
        known = steps[step, _BEGIN]
        alike = steps[step, _END] - known == end - begin
        for run in range(end - begin):
            for part in range(5):
                alike = alike and runs[known + run, part] == runs[begin + run, part]
        if alike:
            steps[step, _TIMES] += times
            used[_RUNS] = begin
            return
    step = used[_STEPS]
    steps[step, _BEGIN], steps[step, _END], steps[step, _TIMES] = begin, end, times
    used[_STEPS] += 1


@compiled
def _cut_in_turn(step: int, tile: int, slides: bool, since: int, memory: _Memory) -> bool:  # pragma: no cover
    """The steps of a loop inside a step: those in which every instance's piece is the same are one.

    Parameters
    ----------
    tile : iterations of each piece
    slides : whether a piece knows the one before it
    since : first step of all that are made by this cut

    Returns whether memory suffices.
    """
    runs, steps, used = memory.runs, memory.steps, memory.used
    begin, end, times = steps[step, _BEGIN], steps[step, _END], steps[step, _TIMES]
    now = 0
    while True:
        if used[_RUNS] + end - begin > len(runs) or used[_STEPS] >= len(steps):
            return False
        # Steps between two changes are alike: the first one fetches all, later ones slide, and pieces that
        # end drop out.
        until = 0
        passed, shift, at = now * tile, -1, used[_RUNS]
        for run in range(begin, end):
            start, size, before = runs[run, _START], runs[run, _SIZE], runs[run, _BEFORE]
            if size <= passed:
                continue
            shift = start if shift < 0 else min(shift, start)
            turn = size // tile
            turn = turn if turn > now else now + 1
            until = turn if until == 0 else min(until, turn)
            kept = min(tile, max(0, before - passed))
            if slides:
                kept = tile if now > 0 else 0
            _add_run(start, runs[run, _DISTANCE], runs[run, _NUMBER], min(tile, size - passed), kept, memory)
        if until == 0:
            return True
        if slides and now == 0:
            until = 1
        for run in range(at, used[_RUNS]):
            runs[run, _START] -= shift
        _add_step(at, times * (until - now), since, memory)
        now = until


@compiled
def _cut_beside(step: int, tile: int, every: bool, since: int, memory: _Memory) -> bool:  # pragma: no cover
    """Pieces of every piece, next to each other.

    Parameters
    ----------
    tile : iterations of each piece
    every : whether all of them are there, or the first of each piece
    since : first step of all that are made by this cut

    Returns whether memory suffices.
    """
    runs, steps, used = memory.runs, memory.steps, memory.used
    begin = used[_RUNS]
    if used[_STEPS] >= len(steps):
        return False
    for run in range(steps[step, _BEGIN], steps[step, _END]):
        start, distance, number = runs[run, _START], runs[run, _DISTANCE], runs[run, _NUMBER]
        size, before = runs[run, _SIZE], runs[run, _BEFORE]
        whole = size // tile if every else 0
        if used[_RUNS] + min(whole, number) + 1 > len(runs):
            return False
        left, kept = size - whole * tile, min(tile, before)
        if number == 1 or whole * tile == distance:
            if whole:
                _add_run(start, tile, number * whole, tile, kept, memory)
        elif number <= whole:
            for piece in range(number):
                _add_run(start + piece * distance, tile, whole, tile, kept, memory)
        else:
            for piece in range(whole):
                _add_run(start + piece * tile, distance, number, tile, kept, memory)
        if left:
            kept = min(tile, max(0, before - whole * tile))
            _add_run(start + whole * tile, distance, number, min(tile, left), kept, memory)
    _add_step(begin, steps[step, _TIMES], since, memory)
    return True


@compiled
def _at_once(
    chosen: Int64s, strides: Int64s, move: int, places: Int64s, memory: _Memory
) -> int:  # pragma: no cover
    """Elements fetched where every loop is at a step of its own.

    Parameters
    ----------
    chosen : the step of every loop
    strides : elements along the axis that one iteration of each loop moves
    move : elements by which a window slides; 0 where none does
    places : is overwritten, shape (loops,)
    """
    runs, steps, ways = memory.runs, memory.steps, memory.ways
    number, total = 1, 0
    for step in chosen:
        number *= steps[step, _END] - steps[step, _BEGIN]
    if number > len(ways):
        return _UNKNOWN
    for way in range(number):
        _take(way, chosen, places, steps)
        extent, missing = 1, -1
        tiles, m, a, n, b = 1, 1, 0, 1, 0
        for loop in range(len(chosen)):
            run, stride = runs[places[loop]], strides[loop]
            extent += (run[_SIZE] - 1) * stride
            if run[_BEFORE] > 0:  # without a tile before it the whole window is missing
                missing = max(0, move - (run[_BEFORE] - run[_SIZE]) * stride)
            if run[_NUMBER] > 1:
                tiles *= run[_NUMBER]
                m, a, n, b = n, b, run[_NUMBER], run[_DISTANCE] * stride
        ways[way, _EXTENT] = extent
        ways[way, _AMOUNT] = extent if missing < 0 else min(extent, missing)
        ways[way, _COUNT] = _UNKNOWN if tiles > m * n else _sums(m, a, n, b)
    memory.stamp[0] += 1
    left = len(memory.tiles) // 2  # places of the table that may be taken yet
    for way in range(number):
        alone = number <= _MANY
        for other in range(number if alone else 0):
            alone = alone and (other == way or ways[other, _EXTENT] != ways[way, _EXTENT])
        if alone and ways[way, _COUNT] != _UNKNOWN:
            total += ways[way, _AMOUNT] * ways[way, _COUNT]
            continue
        _take(way, chosen, places, steps)
        more, taken = _looked_at(places, strides, ways[way], left, memory)
        if taken > left:
            return _UNKNOWN
        total += more
        left -= taken
    return total


@compiled
def _take(way: int, chosen: Int64s, places: Int64s, steps: Int64s) -> None:  # pragma: no cover
    """Write the run of every loop that makes a way."""
    for loop in range(len(chosen)):
        begin, number = steps[chosen[loop], _BEGIN], steps[chosen[loop], _END] - steps[chosen[loop], _BEGIN]
        places[loop] = begin
        if number > 1:
            places[loop] += way % number
            way //= number


@compiled
def _looked_at(
    places: Int64s, strides: Int64s, way: Int64s, left: int, memory: _Memory
) -> tuple[int, int]:  # pragma: no cover
    """What the tiles of a way fetch beyond those that are in the table, and how many were put there.

    Of equal tiles that instances share, the one that misses most pays for all.

    Parameters
    ----------
    places : the run of every loop
    strides : elements along the axis that one iteration of each loop moves
    way : of these runs
    left : places of the table that may be taken; one more is returned where they do not suffice
    """
    runs, table, amount = memory.runs, memory.tiles, way[_AMOUNT]
    start, tiles, more, taken = 0, 1, 0, 0
    for loop in range(len(places)):
        start += runs[places[loop], _START] * strides[loop]
        tiles *= runs[places[loop], _NUMBER]
    for piece in range(tiles):
        first, rest = start, piece
        for loop in range(len(places)):
            number = runs[places[loop], _NUMBER]
            if number > 1:
                first += rest % number * runs[places[loop], _DISTANCE] * strides[loop]
                rest //= number
        tile = first << EXTENT_BITS | way[_EXTENT]
        place = (tile * _APART >> EXTENT_BITS) & (len(table) - 1)
        while table[place, _STAMP] == memory.stamp[0] and table[place, _TILE] != tile:
            place = (place + 1) & (len(table) - 1)
        if table[place, _STAMP] == memory.stamp[0]:
            more += max(0, amount - table[place, _PAID])
            table[place, _PAID] = max(amount, table[place, _PAID])
        elif taken == left:
            return more, left + 1
        else:
            table[place, _TILE], table[place, _STAMP], table[place, _PAID] = tile, memory.stamp[0], amount
            more += amount
            taken += 1
    return more, taken


@compiled
def _sums(m: int, a: int, n: int, b: int) -> int:  # pragma: no cover
    """How many different values ``i * a + j * b`` takes for ``0 <= i < m`` and ``0 <= j < n``."""
    if m * a <= b or n * b <= a:  # one progression lies within the other's gaps
        return m * n
    common, rest = a, b
    while rest:
        common, rest = rest, common % rest
    return m * n - max(0, m - b // common) * max(0, n - a // common)
