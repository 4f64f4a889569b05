"""Copies of blocks in buffers, as linked lists."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.formulation.scheduling.tiled.uses_kernel import NONE
from tilewright.foundation.arrays import Bools, Int32s, Int64s
from tilewright.foundation.compiled import compiled

TABLE = 1 << 18
"""Entries of the table of blocks that have left an engine."""


class Copies(NamedTuple):
    """Copies of blocks in buffers, in the sequence in which they came.

    Parameters
    ----------
    block, where : what it is, and its engine
    start, end : first and last step in which it is there; -1 while the last one is open
    ready : the step in which it is made or has arrived
    coming : the logical step in which it is read next, -1 for none
    home : whether it was made there
    pinned : the mark of the attempt at a step in which it is needed
    """

    block: Int32s
    where: Int32s
    start: Int32s
    end: Int32s
    ready: Int32s
    coming: Int32s
    home: Bools
    pinned: Int64s


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
def slot_of(b: int, e: int) -> Any:  # pragma: no cover
    """Where a table of block and engine has its entry; others may share it, which only delays an arrival."""
    return ((b * 40503 + e * 2654435) ^ (b >> 9)) & (TABLE - 1)


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
def link(node: int, e: int, b: int, lists: Lists) -> None:  # pragma: no cover
    """Put a copy into its engine's list and its block's.

    Parameters
    ----------
    node : the copy
    e, b : its engine and its block
    lists : changed in place
    """
    _insert(node, e, lists.first_on, lists.after, lists.before)
    _insert(node, b, lists.first_of, lists.down, lists.up)


@compiled
def unlink(node: int, e: int, b: int, end: Int32s, gone: Int32s, lists: Lists) -> None:  # pragma: no cover
    """Take a copy out of both lists, and note how long it stood there.

    Parameters
    ----------
    node : the copy
    e, b : its engine and its block
    end : last step of every copy
    gone : per slot of block and engine, the last step in which a copy that left was there; raised in place
    lists : changed in place
    """
    slot = slot_of(b, e)
    gone[slot] = max(gone[slot], end[node])
    _remove(node, e, lists.first_on, lists.after, lists.before)
    _remove(node, b, lists.first_of, lists.down, lists.up)
