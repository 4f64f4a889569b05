"""Nodes and parts of a descent's stack in the order of their keys."""

from __future__ import annotations

import numpy as np

from tilewright.foundation.compiled import compiled
from tilewright.solvers.mapping.descent_state import BEGIN, COUNT, FIRST, KEY, PARTS, USED, Stack


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
