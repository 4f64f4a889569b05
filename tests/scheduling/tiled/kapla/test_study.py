"""The study beside KAPLA's figures: cells are computed once, percentages are above the proven best."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.papers.kapla import chains
from studies.papers.kapla.chains import OTHERS, PROVEN, WAYS, above, cell, contest
from studies.papers.study import Study


def study_in(folder: Path, **more: bool) -> Study:
    """A study of one small network."""
    return Study(folder, "smoke", {**chains.SMOKE, "seconds": 20.0}, **more)


def test_ways_stand_above_the_proven_best(tmp_path: Path) -> None:
    """S meets the proven chain, no way is below it, and a second reading computes nothing."""
    (row,) = contest(study_in(tmp_path), "energy", ":training")
    proven = cell(study_in(tmp_path, draw_only=True), "mlp:training", "energy", PROVEN)
    assert proven["proven"]
    assert proven["bound"] == pytest.approx(proven["value"])
    assert row["S"] == pytest.approx(0, abs=1e-9)
    assert min(row[way] for way in ("B", "R", "T", "K")) >= -1e-9
    assert row["time was up"]  # a smoke run gives it no time
    again = contest(study_in(tmp_path, draw_only=True), "energy", ":training")
    assert repr(again) == repr([row])  # M has no chain, and no number


def test_missing_chains_have_no_percentage() -> None:
    """A way without a chain, or beside no proven one, is not a number; letters name one method each."""
    assert above(110.0, 100.0) == pytest.approx(10)
    assert above(0.0, 100.0) != above(0.0, 100.0)
    assert above(100.0, 0.0) != above(100.0, 0.0)
    assert len({*WAYS.values(), *OTHERS.values(), PROVEN}) == len(WAYS) + len(OTHERS) + 1
