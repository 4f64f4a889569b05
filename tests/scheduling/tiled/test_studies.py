"""The studies beside the paper's figures: what is kept, what is missing, and what is told."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from studies.answers import answers
from studies.tiled_cells import Cell, Found, cell_store, compute, failed
from studies.tiled_figures import FIGURES, Study, main, table

from tilewright.foundation.database import DamagedError

STUDY = Study(["resnet50", "alexnet"], [16], 5.0, "", 1)
PLAN = Found("feasible", "", 10, 1000, 500, 600, 0.5, 0.8, 0.1, 0.9, 77, {"dram": 1.0, "static": 3.0})


def test_what_is_stored_is_read_back_and_not_computed_again(tmp_path: Path) -> None:
    """A cell comes back as it was put; where all are there nothing runs; other seconds differ."""
    store = cell_store(tmp_path / "cells.sqlite")
    cells = [cell for _, row in FIGURES["figure8"].rows(STUDY) for cell in row]
    for cell in cells:
        store.put(cell, PLAN)
    store.close()
    again = cell_store(tmp_path / "cells.sqlite")
    assert all(again.get(cell) == PLAN for cell in cells)
    assert list(answers(again, cells, 1, compute, failed)) == []
    other = Cell(cells[0].network, cells[0].system, cells[0].method, 1, "makespan", 6.0)
    assert again.get(other) is None
    again.close()


def test_a_changed_row_is_damage(tmp_path: Path) -> None:
    """A row that is not what was written is told apart by its seal."""
    path = tmp_path / "cells.sqlite"
    cell = STUDY.cell("resnet50", "ls", 16, 1)
    store = cell_store(path)
    store.put(cell, PLAN)
    with sqlite3.connect(path) as base:
        base.execute("UPDATE cell SET answer = replace(answer, '1000', '900')")
    with pytest.raises(DamagedError):
        store.get(cell)
    store.close()


@pytest.mark.parametrize("name", FIGURES)
def test_tables_say_which_cells_were_not_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every table has as many columns as heads, full or empty, and lists what is missing or failed."""
    path = tmp_path / "cells.sqlite"
    figure, store = FIGURES[name], cell_store(path)
    rows = figure.rows(STUDY)
    store.put(rows[0][1][0], PLAN)
    store.put(rows[0][1][1], Found("error", "it died"))
    lines = [line for line in table(figure, STUDY, store).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {len(figure.heads) + 1}
    store.close()
    asked = [name, "--networks", "resnet50", "alexnet", "--links", "16", "--seconds", "5", "--only-print"]
    main([*asked, "--store", str(path)])
    told = capsys.readouterr().out
    assert "no plan: it died" in told
    assert "alexnet" in told
    assert "not run" in told


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
