"""The studies beside the paper's figures: what is kept, what is missing, and what is told."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from studies.answers import answers
from studies.papers.atomic.cells import METHODS, span, widths
from studies.tiled_cells import Cell, Found, cell_store, compute, failed

from tilewright.foundation.database import DamagedError

CELLS = [Cell("resnet50", "atomic-8x8[link=16]", method, 1, "makespan", 5.0) for method in METHODS.values()]
PLAN = Found("feasible", "", 10, 1000, 500, 600, 0.5, 0.8, 0.1, 0.9, 77, {"dram": 1.0, "static": 3.0})


def test_what_is_stored_is_read_back_and_not_computed_again(tmp_path: Path) -> None:
    """A cell comes back as it was put; where all are there nothing runs; other seconds differ."""
    store = cell_store(tmp_path / "cells.sqlite")
    for cell in CELLS:
        store.put(cell, PLAN)
    store.close()
    again = cell_store(tmp_path / "cells.sqlite")
    assert all(again.get(cell) == PLAN for cell in CELLS)
    assert list(answers(again, CELLS, 1, compute, failed)) == []
    other = replace(CELLS[0], seconds=6.0)
    assert again.get(other) is None
    again.close()


def test_a_changed_row_is_damage(tmp_path: Path) -> None:
    """A row that is not what was written is told apart by its seal."""
    path = tmp_path / "cells.sqlite"
    cell = CELLS[0]
    store = cell_store(path)
    store.put(cell, PLAN)
    with sqlite3.connect(path) as base:
        base.execute("UPDATE cell SET answer = replace(answer, '1000', '900')")
    with pytest.raises(DamagedError):
        store.get(cell)
    store.close()


def test_the_nearest_width_is_named() -> None:
    """Of three widths the one whose numbers miss the printed range least; ties are all named."""
    rows = [
        {"dataflow": "KC", "B/cycle": link, "slow": slow, "fast": 1.0}
        for link, slow in ((8, 3.0), (16, 2.2), (32, 1.5), (8, 2.5))
    ]
    printed = {"slow over fast": ((1.0, 2.0), lambda row: row["slow"])}
    (row,) = widths(rows, printed)
    assert (row["8 B/cycle"], row["16 B/cycle"], row["nearest"]) == ("2.50 to 3.00", "2.20", "32")
    (row,) = widths([one | {"slow": 1.5} for one in rows], printed)
    assert row["nearest"] == "8 and 16 and 32"
    assert widths(rows[:1], printed) == []
    assert span("a", (1.0, 2.0), [1.2, 2.1]).holds


@pytest.mark.slow
def test_a_cell_is_computed_in_a_worker_and_bad_ones_tell_why(tmp_path: Path) -> None:
    """A plan with its figures; an unknown machine is an error that is tried again the next time."""
    store = cell_store(tmp_path / "cells.sqlite")
    good = Cell("alexnet", "atomic-8x8[link=16]", "ls", 1, "makespan", 30.0)
    bad = Cell("alexnet", "atomic-9x9", "ls", 1, "makespan", 30.0)
    results = dict(answers(store, [good, bad, good], 1, compute, failed))
    assert results[good].is_plan
    assert results[good].bound <= results[good].own_bound <= results[good].cycles
    assert results[bad].status == "error"
    assert [cell for cell, _ in answers(store, [good, bad], 1, compute, failed)] == [bad]
    assert compute(bad).status == "error"
    store.close()
