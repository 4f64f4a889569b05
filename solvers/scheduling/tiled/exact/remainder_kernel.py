"""The least that all rounds still to come take, whatever DRAM does, in machine code.

The numbers of tasks per class that may have run form a lattice.  Taken from its end to its beginning, every
member of it has a least sum of lengths and charges of rounds to the end: what each round takes of its longest
task alone, so that no sequence of rounds (`sequence_kernel`) takes less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.tiled.exact.round_length_kernel import NEVER, Tables, charged

LISTED, EXPANDED, WEIGHED, ROUNDS = range(4)
"""Places in a remainder's state: members listed, followed to larger ones, and with a least sum; rounds looked
at."""

MOST_ROUNDS = 20_000_000
"""Rounds that may be looked at; beyond, nothing is known."""


class Remainders(NamedTuple):
    """What is left of each member of the lattice, those of few tasks first.

    Parameters
    ----------
    span : number of keys of tasks; a larger one has blocks above them
    key, least : what has run, and parts of a cycle that all rounds after it take
    table : by hash the number of a member, -1 where none is
    state : how far it is; with more members than there is room for, nothing is known of any
    """

    span: int
    key: Int64s
    least: Int64s
    table: Int64s
    state: Int64s


def remainders_of(number: Int64s, most: int) -> Remainders:
    """Room for so many members, the first of which, with nothing run, is listed.

    Parameters
    ----------
    number : tasks per class
    most : members
    """
    table = np.full(1 << (2 * most).bit_length(), -1, dtype=np.int64)
    table[0] = 0  # where the hash of nothing leads
    key, least = np.zeros((2, most), dtype=np.int64)
    state = np.array([1, 0, 0, 0], dtype=np.int64)
    return Remainders(int(np.prod(number + 1)), key, least, table, state)


@compiled
def ready(t: Tables, n: Int64s, available: Int64s) -> None:
    """Per class the tasks, no more than engines, that may run next after ``n`` have run; they overwrite
    ``available``."""
    for c in range(len(n)):
        available[c] = 0
        # tasks of a class follow each other: the next one may run if those that it needs have run
        while available[c] < t.engines and n[c] + available[c] < t.number[c]:
            possible = True
            for p in range(len(n)):
                if t.least[c, p, n[c] + available[c] + 1] > n[p]:
                    possible = False
                    break
            if not possible:
                break
            available[c] += 1


@compiled
def next_round(s: Int64s, available: Int64s, size: int, engines: int) -> int:
    """Change a round to the next one, of numbers per class that count up: its size, 0 after the last.

    Parameters
    ----------
    s, available : per class, tasks of the round, and those that there are
    size : tasks of the round before the change
    engines : tasks of a round at most
    """
    for at in range(len(s) - 1, -1, -1):
        if s[at] < available[at] and size < engines:
            s[at] += 1
            return size + 1
        size -= s[at]
        s[at] = 0
    return 0


@compiled
def _place(rest: Remainders, key: int) -> Any:
    """Where a key is in the table, or would be."""
    mask = len(rest.table) - 1
    at = ((key * 0x9E3779B97F4A7C1) >> 17) & mask
    while rest.table[at] >= 0 and rest.key[rest.table[at]] != key:
        at = (at + 1) & mask
    return at


@compiled
def remaining(rest: Remainders, key: int) -> Any:
    """Parts of a cycle that the rounds after what has run take at least; 0 where that is not known."""
    if rest.state[WEIGHED] < rest.state[LISTED]:
        return 0
    return rest.least[rest.table[_place(rest, key % rest.span)]]


@compiled
def weigh(t: Tables, rest: Remainders, steps: int) -> bool:
    """List all members, then take their sums from the last to the first; true once nothing is left to do.

    Parameters
    ----------
    t, rest : the instance, and what is changed in place
    steps : members to list, or rounds to look at, about
    """
    classes, total = len(t.number), t.number.sum()
    n = np.zeros(classes, dtype=np.int64)
    s = np.zeros(classes, dtype=np.int64)
    available = np.zeros(classes, dtype=np.int64)
    while steps > 0:
        steps -= 1
        listing = rest.state[EXPANDED] < rest.state[LISTED]
        if not listing and rest.state[WEIGHED] == rest.state[LISTED]:
            return True
        if rest.state[ROUNDS] > MOST_ROUNDS:
            return True
        member = rest.state[EXPANDED] if listing else rest.state[LISTED] - 1 - rest.state[WEIGHED]
        key, done = rest.key[member], 0
        for c in range(classes):
            n[c] = key // t.strides[c] % (t.number[c] + 1)
            done += n[c]
        ready(t, n, available)
        if listing:
            rest.state[EXPANDED] += 1
            if not _expanded(t, rest, key, available):
                return True
            continue
        least, size = NEVER if done < total else 0, 0
        s[:] = 0
        while True:
            size = next_round(s, available, size, t.engines)
            if size == 0:
                break
            steps -= 1
            rest.state[ROUNDS] += 1
            longest, after = 0, key
            for c in range(classes):
                if s[c]:
                    longest = max(longest, t.cycles[c])
                    after += s[c] * t.strides[c]
            took = longest + (
                ended(t, s) if done + size == total else rest.least[rest.table[_place(rest, after)]]
            )
            if took < least:
                least = min(least, took + charged(t, s))
        rest.least[member] = least
        rest.state[WEIGHED] += 1
    return False


@compiled
def _expanded(t: Tables, rest: Remainders, key: int, available: Int64s) -> bool:
    """List what one task more leads to; false where there is no room."""
    for c in range(len(available)):
        if available[c]:
            at = _place(rest, key + t.strides[c])
            if rest.table[at] < 0:
                member = rest.state[LISTED]
                if member == len(rest.key):
                    return False
                rest.key[member] = key + t.strides[c]
                rest.table[at] = member
                rest.state[LISTED] += 1
    return True


@compiled
def ended(t: Tables, s: Int64s) -> Any:
    """Parts of a cycle after a last round of tasks ``s`` per class, in which their results leave."""
    moved, passing = 0, 0
    for c in range(len(s)):
        if s[c]:
            moved += s[c] * max(0, t.leaving_least[c])
            passing = max(passing, t.leaving_passing[c])
    return max(moved, passing)
