"""Copies of blocks in buffers, as linked lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.uses_kernel import NONE
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled

NEAR_BITS, FAR_BITS = 12, 10

NEAR = 1 << NEAR_BITS
"""Entries of the table of blocks that have left an engine that lie together; its smallest size."""

TABLE = NEAR << FAR_BITS
"""The most entries of that table; where blocks times engines are no more, each has one of its own."""


class Copies(NamedTuple):
    """Copies of blocks in buffers.  One that has left gives its place to the next that comes, so that those
    which are there lie together in memory.

    Parameters
    ----------
    block, where : what it is, and its engine
    start : first step in which it is there
    open : whether it is there yet
    ready : the step in which it is made or has arrived
    coming : the logical step in which it is read next, -1 for none
    home : whether it was made there
    pinned : the mark of the attempt at a step in which it is needed
    """

    block: Int32s
    where: Int32s
    start: Int32s
    open: Bools
    ready: Int32s
    coming: Int32s
    home: Bools
    pinned: Int64s


class Stays(NamedTuple):
    """Copies that have left, and the places that they have given back.

    Parameters
    ----------
    block, where, start, end : of each that has left: its block, its engine, its first and its last step
    latest : per block, the last step of a copy that has left and may come again
    spare : places that are free
    numbers : of those that have left, of places that are free, and of places that were ever in use
    """

    block: Int32s
    where: Int32s
    start: Int32s
    end: Int32s
    latest: Int32s
    spare: Int32s
    numbers: Int64s


class Lists(NamedTuple):
    """Copies of blocks in two linked lists each: of their engine, and of their block.

    Parameters
    ----------
    after, before : per copy, its neighbours on the same engine
    down, up : per copy, its neighbours of the same block
    first_on : per engine, its first copy
    first_of : per block, its first copy
    """

    after: Int32s
    before: Int32s
    down: Int32s
    up: Int32s
    first_on: Int32s
    first_of: Int32s


@compiled(inline=True)
def slot_of(b: int, e: int, engines: int, entries: int) -> Any:  # pragma: no cover
    """Where a table of block and engine has its entry; others may share it, which only delays an arrival.

    Engines of a block, and blocks with numbers close to each other, lie together, as they are used together.

    Parameters
    ----------
    b, e : the block and the engine
    engines : of the machine
    entries : of the table, a power of two
    """
    place = np.int64(b) * engines + e
    run = place >> NEAR_BITS
    run = (run + (run >> FAR_BITS) * 40503) & ((entries >> NEAR_BITS) - 1)
    return (run << NEAR_BITS) | (place & (NEAR - 1))


@compiled(inline=True)
def _insert(
    node: int, at: int, first: Int32s, following: Int32s, previous: Int32s
) -> None:  # pragma: no cover
    """Put a copy at the head of the list that begins at ``first[at]``."""
    following[node], previous[node] = first[at], NONE
    if first[at] != NONE:
        previous[first[at]] = node
    first[at] = node


@compiled(inline=True)
def _remove(
    node: int, at: int, first: Int32s, following: Int32s, previous: Int32s
) -> None:  # pragma: no cover
    """Take a copy out of the list that begins at ``first[at]``."""
    if previous[node] == NONE:
        first[at] = following[node]
    else:
        following[previous[node]] = following[node]
    if following[node] != NONE:
        previous[following[node]] = previous[node]


@compiled
def link(e: int, b: int, copies: Copies, lists: Lists, stays: Stays) -> Any:  # pragma: no cover
    """A place for a copy, in its engine's list and its block's.

    Parameters
    ----------
    e, b : its engine and its block
    copies, lists, stays : changed in place
    """
    if stays.numbers[1] > 0:
        stays.numbers[1] -= 1
        node = stays.spare[stays.numbers[1]]
    else:
        node = np.int32(stays.numbers[2])
        stays.numbers[2] += 1
    copies.block[node], copies.where[node], copies.open[node] = b, e, True
    copies.home[node], copies.pinned[node] = False, -1
    _insert(node, e, lists.first_on, lists.after, lists.before)
    _insert(node, b, lists.first_of, lists.down, lists.up)
    return node


@compiled
def unlink(
    node: int, last: int, results: int, copies: Copies, gone: Int32s, lists: Lists, stays: Stays
) -> None:  # pragma: no cover
    """Take a copy out of both lists, and note how long it stood there.

    Parameters
    ----------
    node : the copy
    last : the last step in which it is there
    results : blocks that are whole results, which come first
    copies : changed in place
    gone : per slot of block and engine, the last step in which a copy that left and may come again was there;
        raised in place
    lists, stays : changed in place
    """
    b, e = copies.block[node], copies.where[node]
    # a copy of a result serves reads of its parts too, so that its next use says less
    if copies.coming[node] != NONE or b < results:
        slot = slot_of(b, e, len(lists.first_on), len(gone))
        gone[slot] = max(gone[slot], last)
        stays.latest[b] = max(stays.latest[b], last)
    copies.open[node] = False
    _remove(node, e, lists.first_on, lists.after, lists.before)
    _remove(node, b, lists.first_of, lists.down, lists.up)
    row = stays.numbers[0]
    stays.block[row], stays.where[row], stays.start[row], stays.end[row] = b, e, copies.start[node], last
    stays.numbers[0] += 1
    stays.spare[stays.numbers[1]] = node
    stays.numbers[1] += 1
