"""A store that is damaged, locked or shared says so by name, and none of it is ever believed."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from calls import Call, finish, start
from clocks import delay
from effort import effort
from small_bench import small_request
from tampering import flipped, tampered

from tilewright.benchmarks.plan import make_plan
from tilewright.benchmarks.rows import read_rows
from tilewright.benchmarks.store import Store
from tilewright.foundation.database import DamagedError, Database, LockedError
from tilewright.foundation.errors import InputError
from tilewright.foundation.store import seal

FIRST = "WHERE key = (SELECT min(key) FROM cell)"


def test_every_flipped_byte_is_found_or_changes_nothing(copied_store: Path, tmp_path: Path) -> None:
    """A byte in every third page, and in heads: what is read is what was written, or the file is named."""
    with Store(copied_store) as store:
        rows = read_rows(store)
    size, draw = copied_store.stat().st_size, random.Random(7)
    told: list[str] = []
    path = tmp_path / "flipped.sqlite"
    pages = [*range(0, size, 4096)][draw.randrange(3) :: 1 if effort(1) > 1 else 3]
    places = [draw.randrange(page, page + 4096) for page in pages]
    places += [page + offset for page in (0, 4096, 8192) for offset in (0, 3, 5, 18, 24, 60, 68)]
    for place in places:
        shutil.copy(copied_store, path)
        flipped(path, place)
        try:
            with Store(path) as store:
                assert read_rows(store) == rows, place
        except InputError as error:
            told.append(str(error))
    assert len(told) > len(places) // 3
    assert all(text.startswith(str(path)) and "\n" not in text for text in told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (f"UPDATE cell SET value_key = '1/0' {FIRST}", "cell "),
        (f"UPDATE cell SET mapping = '[' {FIRST}", "cell "),
        (f"UPDATE cell SET trace = '[1]' {FIRST}", "cell "),
        ("DELETE FROM problem", "is missing"),
        ("UPDATE problem SET record = '{}'", "problem "),
        ("UPDATE place SET part = 'whole'", "place "),
    ],
)
def test_content_that_cannot_be_read_is_one_line(
    call: Call, copied_store: Path, change: str, told: str
) -> None:
    """Exit code 2 and the file, with seals that do not fit and with seals that do."""
    second = copied_store.with_name("second.sqlite")
    shutil.copy(copied_store, second)
    tampered(copied_store, change)
    for table, keys in (("cell", 1), ("problem", 1), ("place", 7)):
        tampered(second, change, table=table, keys=keys)
    for path, words in ((copied_store, "damaged"), (second, told)):
        outcome = call("runs", path)
        assert outcome.code == 2
        assert str(path) in outcome.err
        assert words in outcome.err
        assert outcome.err.count("\n") == 1


def test_two_benchmarks_make_one_store(tmp_path: Path) -> None:
    """Started together on a store that is not there yet, both end well, and so does every run."""
    args = ("bench", "gemm:M=8,N=4,K=8", "-a", "tpu-edge", "-m", "random[victory=3]", "--seeds", "2", "-q")
    processes = [start(tmp_path, *args, "--optimum", "branch", "-j", "1") for _ in range(2)]
    outcomes = [finish(process) for process in processes]
    assert [(outcome.code, outcome.err) for outcome in outcomes] == [(0, "")] * 2
    with Store(tmp_path / "bench.sqlite") as store:
        assert {row.status for row in read_rows(store)} == {"feasible", "optimal"}


def test_many_threads_make_one_store(tmp_path: Path) -> None:
    """The moment of making is shared by many; none meets a table that another one has made."""
    entries = make_plan(small_request()).entries
    failures: list[Exception] = []

    def make() -> None:
        try:
            with Store(tmp_path / "new.sqlite", create=True) as store:
                store.place(entries)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_store_of_the_first_version_is_sealed_as_it_stands(copied_store: Path, tmp_path: Path) -> None:
    """Rows without seals are kept, and from then on a change is found."""
    with Store(copied_store) as store:
        rows = read_rows(store)
    first = tmp_path / "first.sqlite"
    base = sqlite3.connect(first)
    base.execute("ATTACH ? AS new", (str(copied_store),))
    for kind, name, statement in base.execute("SELECT type, name, sql FROM new.sqlite_master").fetchall():
        if name == "evidence":
            continue
        plain = re.sub(r"evidence TEXT,", "", re.sub(r"--.*", "", statement))
        base.execute(re.sub(r",\s*seal TEXT NOT NULL DEFAULT ''", "", plain))
        if kind == "table":
            columns = ", ".join(row[1] for row in base.execute(f"PRAGMA main.table_info({name})"))
            base.execute(f"INSERT INTO main.{name} SELECT {columns} FROM new.{name}")
    base.commit()
    base.execute("DETACH new")
    base.executescript("PRAGMA application_id = 0x546C5772; PRAGMA user_version = 1")
    base.close()
    copied_store = first
    with Store(copied_store) as store:
        assert read_rows(store) == rows
    tampered(copied_store, f"UPDATE cell SET wall_s = 0 {FIRST}")
    with Store(copied_store) as store, pytest.raises(DamagedError, match="does not match its hash"):
        read_rows(store)


def test_patience_with_a_lock_ends(tmp_path: Path) -> None:
    """A lock is waited for as long as was said, and no longer than the call; then the file is named."""
    path = tmp_path / "locked.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    stop, began = threading.Event(), time.monotonic()
    with Database(path, lambda: 0.2) as base, pytest.raises(LockedError, match="locked by another program"):
        base.rows("SELECT * FROM t")
    assert 0.2 <= time.monotonic() - began < delay()
    stop.set()
    with Database(path, lambda: 60, stop) as base, pytest.raises(LockedError):
        base.rows("SELECT * FROM t")
    assert time.monotonic() - began < delay()
    threading.Timer(0.1, stop.set).start()
    released = threading.Timer(0.1, lambda: None)
    released.start()
    other.execute("COMMIT")
    with Database(path, lambda: 10) as base:
        assert base.rows("SELECT * FROM t") == []
    other.close()


def test_seals_are_those_of_what_comes_back() -> None:
    """Numbers that SQLite turns into floats have the same seal; anything else has another one."""
    assert seal((1, "a", None)) == seal((1.0, "a", None)) != seal((1, "a", ""))
    assert seal((0.1,)) != seal(("0.1",))
    assert seal((b"x",)) != seal(("x",))
