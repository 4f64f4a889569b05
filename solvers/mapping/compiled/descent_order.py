"""Nodes and parts of a descent's stack in the order of their keys, and the sequence of groups.

Splitting a group makes some children of a node, of which some are kept.  Both are counted for every group
and every set of groups that are split already.  An expansion splits groups in the sequence with which, by
these counts, the fewest nodes are bounded.
"""

from __future__ import annotations

import numpy as np

from tilewright.foundation.compiled import compiled
from tilewright.solvers.mapping.compiled.descent_state import (
    BEGIN,
    COUNT,
    FIRST,
    KEPT,
    KEY,
    MADE,
    MOST_ORDERED,
    PARTS,
    SPLIT,
    USED,
    Decisions,
    Stack,
)

_PROBED = 16  # expansions of a stage, of which one begins with a group whose turn it is
_REMEMBERED = 1 << 20  # children, of whose counts then half is kept


@compiled(ieee=True)
def order_groups(decisions: Decisions, stack: Stack, stage: int, learns: bool) -> None:  # pragma: no cover
    """Say in which sequence an expansion splits the groups of a stage.

    Parameters
    ----------
    learns : whether it is the one that is best as far as is known, now and then another; else that of the
        fewest cells first
    """
    order, count = stack.order, decisions.split_counts[stage]
    for place in range(count):
        order[place] = decisions.splits[stage, place]
    if not learns or count < 2 or count > MOST_ORDERED:
        return
    counts, every = decisions.counts[stage], 1 << count
    best, costs = np.empty(every, dtype=np.int64), np.zeros(every, dtype=np.float64)
    for done in range(every - 2, -1, -1):
        costs[done] = np.inf
        for place in range(count):
            if done >> place & 1:
                continue
            # What was never tried counts as costing nothing, so that it is tried.
            cost, tried = 0.0, counts[done, place]
            if tried[MADE] > 0:
                cost = (tried[MADE] + tried[KEPT] * costs[done | 1 << place]) / max(1, tried[SPLIT])
            if cost < costs[done]:
                costs[done], best[done] = cost, place
    turn = decisions.turns[stage]
    decisions.turns[stage] = turn + 1
    if turn % _PROBED == _PROBED - 1:
        best[0] = turn // _PROBED % count
    done = 0
    for at in range(count):
        order[at] = decisions.splits[stage, best[done]]
        done |= 1 << best[done]


@compiled(ieee=True)
def note_split(
    decisions: Decisions, stack: Stack, stage: int, level: int, split: int, made: int, kept: int
) -> None:  # pragma: no cover
    """Count what splitting the group of a level has come to.

    Parameters
    ----------
    stack : whose expansion it is
    stage, level : of the expansion
    split, made, kept : nodes, children that were bounded, and those that were kept
    """
    count, done, own = decisions.split_counts[stage], 0, 0
    if count < 2 or count > MOST_ORDERED:
        return
    for place in range(count):
        for at in range(level):
            if stack.order[at] == decisions.splits[stage, place]:
                done |= 1 << place
        if stack.order[level] == decisions.splits[stage, place]:
            own = place
    counts = decisions.counts[stage, done, own]
    counts[SPLIT] += split
    counts[MADE] += made
    counts[KEPT] += kept
    if counts[MADE] > _REMEMBERED:
        for column in range(3):
            counts[column] = (counts[column] + 1) // 2


@compiled(ieee=True)
def keep_best(stack: Stack, level: int, count: int, most: int) -> int:  # pragma: no cover
    """Keep the cheapest nodes of a level, in the order of their keys; how many these are.

    Parameters
    ----------
    stack : whose level it is
    level, count : the level, and its nodes
    most : nodes that are kept at most
    """
    size = min(count, most)
    order = np.argsort(stack.level_bounds[level, KEY, :count])
    row = np.empty(size, dtype=np.int64)
    for group in range(stack.level_cells.shape[1]):
        cells = stack.level_cells[level, group]
        for j in range(size):
            row[j] = cells[order[j]]
        for j in range(size):
            cells[j] = row[j]
    entries = np.empty(size, dtype=np.float64)
    for which in range(3):
        known = stack.level_bounds[level, which]
        for j in range(size):
            entries[j] = known[order[j]]
        for j in range(size):
            known[j] = entries[j]
    return size


@compiled(ieee=True)
def order_nodes(stack: Stack, begin: int, count: int) -> None:  # pragma: no cover
    """Put nodes of the pool in the order of their keys, the dearest first, of equal ones the last."""
    order = np.argsort(stack.bounds[KEY, begin : begin + count])
    row = np.empty(count, dtype=np.int64)
    for group in range(stack.cells.shape[0]):
        cells = stack.cells[group, begin:]
        for j in range(count):
            row[j] = cells[order[j]]
        for j in range(count):
            cells[count - 1 - j] = row[j]
    entries = np.empty(count, dtype=np.float64)
    for which in range(3):
        known = stack.bounds[which, begin:]
        for j in range(count):
            entries[j] = known[order[j]]
        for j in range(count):
            known[count - 1 - j] = entries[j]


@compiled(ieee=True)
def cheapest_last(stack: Stack) -> None:  # pragma: no cover
    """Put the parts that the expansion has made in order, the dearest first, of equal ones the last."""
    parts, choices = stack.parts, stack.choices
    first, end = stack.state[FIRST], stack.state[PARTS]
    keys = np.empty(max(0, end - first), dtype=np.float64)
    for part in range(first, end):
        keys[part - first] = stack.bounds[KEY, parts[part, BEGIN] + parts[part, COUNT] - 1]
    order = np.argsort(keys)
    old_parts, old_choices = parts[first:end].copy(), choices[first:end].copy()
    for k in range(end - first):
        for column in range(4):
            parts[end - 1 - k, column] = old_parts[order[k], column]
        for column in range(choices.shape[1]):
            choices[end - 1 - k, column] = old_choices[order[k], column]


@compiled(ieee=True)
def note_use(stack: Stack) -> None:  # pragma: no cover
    """Note what the parts take of the pool."""
    used = 0
    for part in range(stack.state[PARTS]):
        used = max(used, stack.parts[part, BEGIN] + stack.parts[part, COUNT])
    stack.state[USED] = used
