"""Fused products in RTL: what moves between memory, buffer and registers is what the evaluator counts.

``tests/data/fused_rtl_rows.json`` has one of TileFlow's runs of every shape and height of the shared tile.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from studies.fused_rtl import count, main, measured

PATH = Path(__file__).parents[1] / "data" / "fused_rtl_rows.json"
ROWS = json.loads(PATH.read_text("utf-8"))["rows"]


def test_traffic_of_fused_products_is_that_of_the_rtl() -> None:
    """All four counts of every row, on a machine that has room for them."""
    assert len(ROWS) >= 12
    for row in ROWS:
        counted = count(row)
        assert counted.traffic == measured(row), row
        assert not counted.violations
        assert 0.8 < counted.bus_cycles / row["cycles"] < 1.1  # memory's port decides


def test_other_tiles_give_other_traffic() -> None:
    """A shared tile of another height is told apart: the counts are no constants of the shape."""
    row = next(row for row in ROWS if row["micro_M1"] == 32)
    assert count({**row, "micro_M1": 16, "micro_M2": 16}).traffic != measured(row)
    assert count({**row, "micro_N1": row["N1"] // 2}).traffic != measured(row)


def test_the_study_prints_rows_met(capsys: pytest.CaptureFixture[str]) -> None:
    """As the manual's command does."""
    assert main([str(PATH)]) == 0
    assert f"{len(ROWS)} of {len(ROWS)} rows met" in capsys.readouterr().out
