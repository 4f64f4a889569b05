"""Transfers and residencies in a plan's order, and the table of copies that have left, on random rows."""

from typing import Any

import numpy as np
import pytest

from tilewright.formulation.scheduling.tiled.copies_kernel import NEAR, TABLE, slot_of
from tilewright.formulation.scheduling.tiled.plan import make_residency, make_transfers

ENGINES = 5


@pytest.mark.parametrize(
    ("rows", "steps", "blocks", "size"),
    [(0, 1, 1, 1), (1, 1, 1, 1), (40, 3, 4, 3), (3000, 6, 30, 4), (500, 9, 2**30, 2**40), (50, 2**30, 9, 9)],
)
def test_transfers_and_residencies_stand_in_order(rows: int, steps: int, blocks: int, size: int) -> None:
    random = np.random.default_rng(rows)
    block, source, target, first = (
        random.integers(0, most, rows) for most in (blocks, ENGINES + 2, ENGINES + 2, steps)
    )
    last, sizes = first + random.integers(0, 4, rows), random.integers(0, size, rows)
    moving = make_transfers(ENGINES, block, source, target, sizes, first, last)
    order = np.lexsort((sizes, target >= ENGINES, source, block, last, first))
    found: list[Any] = [moving.block, moving.source, moving.target, moving.bytes, moving.first, moving.last]
    given: list[Any] = [block, source, target, sizes, first, last]
    assert [column.tolist() for column in found] == [column[order].tolist() for column in given]
    held = make_residency(block, source, first, last)
    order = np.lexsort((first, source, block))
    assert [column.tolist() for column in (held.block, held.engine, held.start, held.end)] == [
        column[order].tolist() for column in (block, source, first, last)
    ]


def test_a_plan_that_runs_backwards_still_stands_in_order() -> None:
    first, last = np.array([3, 1, 2]), np.array([1, 4, -1])
    zero = np.zeros(3, dtype=np.int64)
    moving = make_transfers(ENGINES, zero, zero, zero, zero, first, last)
    assert moving.first.tolist() == [1, 2, 3]
    assert moving.last.tolist() == [4, -1, 1]


@pytest.mark.parametrize("entries", [NEAR, 4 * NEAR, TABLE])
def test_copies_have_an_entry_each_where_the_table_is_large_enough(entries: int) -> None:
    engines = 48
    blocks = np.unique(
        np.concatenate([np.arange(60), np.linspace(0, entries // engines - 1, 60).astype(int)])
    )
    slots = {slot_of(int(b), e, engines, entries) for b in blocks for e in range(engines)}
    assert len(slots) == engines * len(blocks)
    assert min(slots) >= 0
    assert max(slots) < entries
    assert 0 <= slot_of(2**31 - 1, engines - 1, engines, entries) < entries
