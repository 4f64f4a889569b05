"""The tables beside KAPLA's: cells are computed once, percentages are above the least that was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from studies import kapla_edge, kapla_tables
from studies.kapla_cells import ChainFound, chain_store, compute
from studies.kapla_tables import SYSTEM, TABLES, Study

STUDY = Study(("mlp",), SYSTEM, 2, 3, 3, 30.0)


def test_ways_agree_on_a_small_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Best-first and pricing everything prove one value of a training graph; no other way is below it, and a
    second call computes nothing.
    """
    cells = STUDY.contest("mlp:training", "energy")
    proven, priced, tangram, kapla, *random = (compute(cell) for cell in cells)
    assert (proven.status, priced.status) == ("proven", "proven")
    assert proven.value == pytest.approx(priced.value, rel=1e-12)
    assert all(answer.value >= proven.value * (1 - 1e-12) for answer in (tangram, kapla, *random))
    assert kapla.schemes == proven.schemes >= kapla.valid >= kapla.kept > 0
    store = tmp_path / "t.sqlite"
    args = ["table6", "--networks", "mlp", "--batch", "2", "--store", str(store)]
    for more in (["--minutes", "0"], [], []):
        assert kapla_tables.main([*args, *more]) == 0
    reported = capsys.readouterr()
    assert reported.err.count("mlp energy kapla 4: found") == 1
    assert reported.out.count("| mlp |") == 3
    store.write_text("not a database")
    assert kapla_tables.main(args) == 2


def test_percentages_are_above_the_least(tmp_path: Path) -> None:
    """B, S, the median of R, T and K against the least of all; what is missing or found nothing is named."""
    store = chain_store(tmp_path / "t.sqlite")
    values = [100.0, 0.0, 120.0, 105.0, 130.0, 150.0, 140.0, 160.0, 170.0]
    for cell, value in zip(STUDY.contest("mlp", "energy"), values, strict=True):
        status = "proven" if cell.way == "proven" else "found" if value else "none"
        store.put(cell, ChainFound(status, value, 100.0, 1.0, message="" if value else "the time was up"))
    shown = kapla_tables.table("figure9", STUDY, store)
    assert "| mlp | 1e-07 | proven | 0.0 | +0.0 | - | +50.0 | +20.0 | +5.0 |" in shown
    assert "- mlp, priced: no chain: the time was up" in shown
    assert "not run" in kapla_tables.table("figure7", replace(STUDY, networks=("lstm",)), store)
    assert set(TABLES) == {"figure7", "figure8", "figure9", "figure11", "table4", "table6"}
    store.close()


def test_the_edge_device_adds_up_layers(tmp_path: Path) -> None:
    """Energies of one way are those of its layers, and the table has them above the proven ones."""
    store = kapla_edge.edge_store(tmp_path / "e.sqlite")
    for cell in kapla_edge.cells("mlp", "tpu-edge", 1.0):
        energy = {"B": 2e9, "R": 3e9 + cell.seed, "A": 2.2e9, "K": 2.5e9}[cell.way]
        store.put(cell, kapla_edge.EdgeFound("found", energy, 1e9, 4, 4, 0.5))
    shown = kapla_edge.table(["mlp", "lstm"], "tpu-edge", 1.0, store)
    assert "| mlp | 4 | 4 | 2 | 50.0 | +50.0 | +10.0 | +25.0 | 0.5 | 0.5 | 0.5 | 0.5 |" in shown
    assert "| lstm | not run |" in shown
    store.close()
