"""Documents and stores that earlier versions wrote: read back, field by field, and checked.

``tests/data/earlier/first`` is of version 0.1.0, ``second`` of its successor; stores are SQL texts there.
"""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tampering import tampered

import tilewright as tw
from tilewright.benchmarks.rows import read_rows
from tilewright.benchmarks.store import Store
from tilewright.foundation.database import DamagedError
from tilewright.foundation.errors import InputError
from tilewright.report.records.evidence import EvidenceFile
from tilewright.report.records.kinds import parse_any
from tilewright.solvers.mapping.explore.store import ExploreStore
from tilewright.solvers.scheduling.herald.cost_tables.store import CostStore

DATA = Path(__file__).parent / "data" / "earlier"
VERSIONS = ("first", "second")
DOCUMENTS = ("result", "explore", "schedule", "codesign", "plan", "compare")


def lost(before: Any, after: Any, where: str = "") -> list[str]:
    """Where plain data lack something of older ones, or say something else."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            line
            for key, value in before.items()
            for line in (lost(value, after[key], f"{where}.{key}") if key in after else [f"{where}.{key}"])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [line for place, pair in enumerate(pairs) for line in lost(*pair, f"{where}[{place}]")]
    return [] if before == after else [where]


def restored(folder: Path, version: str, kind: str, name: str) -> Path:
    """A store of an earlier version as a file."""
    path = folder / name
    with closing(sqlite3.connect(path)) as base:
        base.executescript((DATA / version / f"{kind}.sql").read_text())
    return path


def version_of(path: Path) -> int:
    """The version that a store says its tables have."""
    with closing(sqlite3.connect(path)) as base:
        return int(base.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_earlier_documents_are_read_and_hold(version: str, kind: str) -> None:
    """Every field of the file is in the document that is read from it, and its claims hold."""
    path = DATA / version / f"{kind}.json"
    document = tw.load(path)
    assert lost(json.loads(path.read_text()), document.record.to_data()) == []
    assert tw.check(document).holds


@pytest.mark.parametrize("version", VERSIONS)
def test_earlier_benchmarks_are_read(version: str, tmp_path: Path) -> None:
    """All runs are there, and a store without evidence is brought up; another program reads it then too."""
    path = restored(tmp_path, version, "bench", "bench.sqlite")
    for _ in range(2):
        with Store(path) as store:
            rows = [(row.method, row.status, row.value) for row in read_rows(store)]
        assert sorted(rows) == [
            ("branch", "optimal", 1002371.04),
            ("kapla", "feasible", 1002371.04),
            ("random", "feasible", 1210360.32),
        ]
        assert version_of(path) == 4


def test_damage_is_not_brought_up(tmp_path: Path) -> None:
    """A row of an older store that is not what was written is named, and gets no seal that fits."""
    path = restored(tmp_path, "first", "bench", "bench.sqlite")
    tampered(path, "UPDATE cell SET wall_s = wall_s + 1 WHERE method = 'kapla'")
    for _ in range(2):
        with pytest.raises(DamagedError, match="does not match its hash"):
            Store(path)
        assert version_of(path) == 2


def test_many_bring_up_one_store(tmp_path: Path) -> None:
    """Threads that open an older store at once all read the same rows of it."""
    path = restored(tmp_path, "first", "bench", "bench.sqlite")

    def opened(_: int) -> list[str]:
        with Store(path) as store:
            return [cell.key for cell in store.cells()]

    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(opened, range(8)))
    assert len(keys[0]) == 3
    assert keys == keys[:1] * 8


@pytest.mark.parametrize("version", VERSIONS)
def test_earlier_contests_are_read(version: str, tmp_path: Path) -> None:
    """The runs of a document are in the store, with their plans where the version kept any."""
    path = restored(tmp_path, version, "compare", "compare.sqlite")
    document = json.loads((DATA / version / "compare.json").read_text())
    told = [run.get("evidence") for method in document["contestants"] for run in method["runs"]]
    assert (told == [None, None]) == (version == "first")
    with EvidenceFile(path) as file:
        assert [None if key is None else file.text(key) is not None for key in told] == [
            None if key is None else True for key in told
        ]
        assert file.text("0" * 64) is None
    with Store(path) as store:
        cells = list(store.cells())
        assert [cell.evidence for cell in cells if cell.evidence] == sorted(
            (key for key in told if key), key=[cell.evidence for cell in cells].index
        )
        assert {cell.answer.status for cell in cells} == {"feasible"}


@pytest.mark.parametrize("version", VERSIONS)
def test_earlier_proofs_and_costs_are_read(version: str, tmp_path: Path) -> None:
    """Every cell of an exploration and every row of cost tables is believed, and more can be kept."""
    path = restored(tmp_path, version, "explore", "explore.sqlite")
    with closing(sqlite3.connect(path)) as base:
        keys = [key for (key,) in base.execute("SELECT key FROM cell")]
    with ExploreStore(path) as proofs:
        assert keys
        assert len(proofs) == len(keys)
        assert {proofs.get(key).status for key in keys} == {"optimal"}  # type: ignore[union-attr]
    path = restored(tmp_path, version, "costs", "costs-3.sqlite")
    with closing(sqlite3.connect(path)) as base:
        surveys = dict(base.execute("SELECT survey, count(*) FROM costs GROUP BY survey"))
    with CostStore(tmp_path) as costs:
        for survey, count in surveys.items():
            assert len(costs.read(survey)) == count
            assert all(costs.read(survey).values())
        assert costs.refused == 0
        costs.forget(survey)
        assert costs.read(survey) == {}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_another_version_of_a_schema_is_named(kind: str) -> None:
    """A document of a later version is refused with the version that is read; one without any, with all."""
    data = json.loads((DATA / "second" / f"{kind}.json").read_text())
    with pytest.raises(
        InputError, match=rf"schema: expected tilewright\.{kind}/1, got 'tilewright\.{kind}/9'$"
    ):
        parse_any({**data, "schema": f"tilewright.{kind}/9"}, "document")
    del data["schema"]
    for nothing in (data, [], None):
        with pytest.raises(InputError, match=rf"schema: missing, expected .*tilewright\.{kind}/1"):
            parse_any(nothing, "document")
