"""A store whose disk fills up, fails or is locked while it is written: nothing that was found is lost."""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from calls import SMALL, Call, finish, start

from tilewright.foundation.database import Database
from tilewright.foundation.store import Column, Layout, SealedStore, Table

CELL = Table(
    "cell", (Column("key", "INTEGER NOT NULL"), Column("text", "TEXT NOT NULL")), lambda row: int(row["key"])
)
LAYOUT = Layout(7, 1, (CELL,), "a store")
TEXT = "x" * 5000
"""More than a page holds."""

Change = Callable[[], object]


def full(base: Database, other: sqlite3.Connection) -> tuple[Change, Change]:
    """No page is left; room again."""
    return (
        lambda: base.rows("PRAGMA max_page_count = 1"),
        lambda: base._file.execute("PRAGMA max_page_count = 100000").fetchall(),
    )


def read_only(base: Database, other: sqlite3.Connection) -> tuple[Change, Change]:
    """The file cannot be written; it can again."""
    return (lambda: base.rows("PRAGMA query_only = 1"), lambda: base._file.execute("PRAGMA query_only = 0"))


def locked(base: Database, other: sqlite3.Connection) -> tuple[Change, Change]:
    """Another program writes for long; it has ended."""
    return lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK")


@pytest.mark.parametrize("fault", [full, read_only, locked])
def test_rows_wait_in_memory_until_the_file_takes_them(tmp_path: Path, fault: Any) -> None:
    """Reads find every row meanwhile, the file holds those before, and in the end all of them, in order."""
    path = tmp_path / "base.sqlite"

    def kept(connection: sqlite3.Connection) -> list[int]:
        return [key for (key,) in connection.execute("SELECT key FROM cell ORDER BY key")]

    with (
        SealedStore(path, LAYOUT, lambda: 0.1) as base,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        begin, end = fault(base, other)
        for key in range(3):
            base.add(CELL, {"key": key, "text": TEXT})
        assert base.failure is None
        begin()
        for key in range(3, 6):
            base.add(CELL, {"key": key, "text": TEXT})
            assert str(base.failure).startswith(f"{path}: cannot be written: ")
            assert [*base.items(CELL, ["key"])] == [*range(key + 1)]
            assert kept(other) == [0, 1, 2]
        end()
        assert kept(other) == [0, 1, 2]
        base.add(CELL, {"key": 6, "text": TEXT})
        assert base.failure is None
        assert kept(other) == [*range(7)]
        assert [*base.items(CELL, ["key"])] == [*range(7)]
        base.examine()


CALLS = {
    "bench": ["bench", SMALL, "-a", "nvdla-256,tpu-edge", "-m", "random", "--seeds", "2", "-t", "1"],
    "compare": ["compare", SMALL, "--system", "atomic-8x8[engines=2x2]", "--methods", "ls,rammer"],
    "explore": ["explore", SMALL, "-a", "dmazerunner-256", "--vary", "clock_mhz=100..400+50", "--every"],
}
STORES = {"bench": "--out", "compare": "--store", "explore": "--store"}
FEW = {"compare": ["--seeds", "1", "-t", "1"]}


def arguments(verb: str) -> list[str]:
    """A call whose store is ``s.sqlite``; what has documents writes ``s.json`` too."""
    files = [STORES[verb], "s.sqlite"] + ([] if verb == "bench" else ["--out", "s.json"])
    return [*CALLS[verb], *FEW.get(verb, []), "--jobs", "1", "-q", "-f", "json", *files]


def durable(verb: str, document: dict[str, Any]) -> object:
    """What does not depend on the clock."""
    match verb:
        case "bench":
            return [(method["runs"], method["missing"], method["mean"]) for method in document["methods"]]
        case "compare":
            return document["complete"], [len(contestant["runs"]) for contestant in document["contestants"]]
        case _:
            return document["complete"], [design["value"] for design in document["designs"]]


def rows_in(path: Path) -> int:
    """The cells of a store that is whole."""
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(base.execute("SELECT count(*) FROM cell").fetchone()[0])


@pytest.mark.parametrize("verb", CALLS)
def test_a_store_that_fills_up_loses_no_answer(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """One line, exit code 1; stdout and ``--out`` tell all; the same call goes on from the file."""
    keep, count = Database.keep, 0

    def filling(self: Database, statement: str, row: Sequence[object]) -> None:
        nonlocal count
        count += 1
        if count == 3:
            self.rows("PRAGMA max_page_count = 1")
        keep(self, statement, [*row])

    with monkeypatch.context() as patch:
        patch.setattr(Database, "keep", filling)
        outcome = call(*arguments(verb))
    assert outcome.err == "tilewright: error: s.sqlite: cannot be written: database or disk is full\n"
    assert outcome.code == 1
    assert verb == "bench" or json.loads((tmp_path / "s.json").read_text()) == outcome.document
    before = rows_in(tmp_path / "s.sqlite")
    again = call(*arguments(verb))
    assert (again.code, again.err) == (0, "")
    assert durable(verb, again.document) == durable(verb, outcome.document)
    assert 0 < before < rows_in(tmp_path / "s.sqlite")
    if verb != "explore":
        assert call("runs", "s.sqlite", "--check").code == 0


@pytest.fixture
def small_files() -> Iterator[int]:
    """Files that this process's children write have a limit, which SQLite sees as a failing disk."""
    size = 90_000
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    yield size
    resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sizes of files are limited in other ways elsewhere")
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("verb", CALLS)
def test_a_file_that_cannot_grow_loses_no_answer(
    tmp_path: Path, small_files: int, verb: str, jobs: str
) -> None:
    """The same in processes of their own, where the system itself refuses to write."""
    many = {
        "bench": ["--seeds", "12"],
        "compare": ["--methods", "ls,rammer,cnn-p,il-pipe,atomic", "--seeds", "8"],
        "explore": [],
    }[verb]
    wide = ["--vary", "levels.RF.capacity=16B..1kB*2"] if verb == "explore" else []
    outcome = finish(start(tmp_path, *arguments(verb), "--jobs", jobs, *many, *wide))
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "s.sqlite: cannot be written: disk I/O error" in outcome.err
    assert outcome.document
    assert rows_in(tmp_path / "s.sqlite")
