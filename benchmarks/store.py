"""The SQLite file that holds a benchmark's cells.  ``docs/benchmarking.md`` describes its tables.

Every cell is committed the moment it ends; a process that is killed loses none that had ended.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from tilewright.benchmarks.cells import Answer, Entry, Part, Place, ProblemRecord, Task
from tilewright.workloads.errors import InputError, one_line

APPLICATION: Final = 0x546C5772  # "TlWr", SQLite's application_id
VERSION: Final = 1
"""Of the tables below, SQLite's user_version."""

_TABLES = """
CREATE TABLE problem (
    hash TEXT PRIMARY KEY,           -- input hash
    record TEXT NOT NULL             -- operator, machine, cost model, objective, factors as JSON
) WITHOUT ROWID;
CREATE TABLE cell (
    key TEXT PRIMARY KEY,            -- content hash of all that the answer depends on
    problem TEXT NOT NULL REFERENCES problem (hash),
    method TEXT NOT NULL,
    method_version TEXT NOT NULL,
    seed INTEGER NOT NULL,
    time_limit_s REAL NOT NULL,
    threads INTEGER NOT NULL,
    status TEXT NOT NULL,            -- optimal, feasible, infeasible, unknown, error
    value_key TEXT,                  -- exact objective key of the best mapping, a fraction
    bound_key TEXT,
    value REAL,                      -- the objective as people read it
    bound REAL,
    wall_s REAL NOT NULL,
    message TEXT NOT NULL,
    metrics TEXT,                    -- as in the results document, JSON
    mapping TEXT,                    -- nodes, outermost first, JSON
    trace TEXT NOT NULL,             -- [[seconds, value key, bound key, source, improved, heuristic], ...]
    versions TEXT NOT NULL,          -- of this program and its libraries, JSON
    ended TEXT NOT NULL              -- UTC
) WITHOUT ROWID;
CREATE TABLE place (
    suite TEXT, layer TEXT, arch TEXT, objective TEXT, part TEXT, method TEXT, seed INTEGER,
    count INTEGER NOT NULL,          -- how often the suite's network has the layer
    key TEXT NOT NULL,               -- the cell that belongs here by its inputs, there or still to come
    PRIMARY KEY (suite, layer, arch, objective, part, method, seed)
) WITHOUT ROWID;
CREATE INDEX place_key ON place (key);
CREATE INDEX cell_problem ON cell (problem);
"""

_CELL = (
    "key",
    "problem",
    "method",
    "method_version",
    "seed",
    "time_limit_s",
    "threads",
    "status",
    "value_key",
    "bound_key",
    "value",
    "bound",
    "wall_s",
    "message",
    "metrics",
    "mapping",
    "trace",
    "versions",
    "ended",
)


@dataclass(frozen=True)
class Cell:
    """A finished cell."""

    key: str
    problem: str
    method: str
    method_version: str
    seed: int
    time_limit_s: float
    threads: int
    ended: str
    answer: Answer

    @property
    def value_key(self) -> Fraction | None:
        return None if self.answer.value_key is None else Fraction(self.answer.value_key)


@dataclass(frozen=True)
class Placed:
    """A place of the benchmark and its cell, if that has ended."""

    place: Place
    count: int
    key: str
    cell: Cell | None


class Store:
    """An open store.

    Parameters
    ----------
    create : make the file where there is none

    Raises
    ------
    InputError : for a file that cannot be opened or is no store of this version
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise InputError(str(path), None, "no such file, expected a store that `tilewright bench` wrote")
        if not path.parent.is_dir():
            raise InputError(str(path), None, f"cannot be written: no folder {path.parent}")
        try:
            self._base = sqlite3.connect(path, timeout=30, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(str(path), None, f"cannot be opened: {one_line(error)}") from None
        try:
            self._open(create)
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise InputError(str(path), None, f"not a store: {one_line(error)}") from None
        except InputError:
            self._base.close()
            raise

    def _open(self, create: bool) -> None:
        application, version = self._pragma("application_id"), self._pragma("user_version")
        empty = not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if create and empty:
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {APPLICATION}; "
                f"PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif application != APPLICATION:
            raise InputError(str(self.path), None, "an SQLite file of another program, expected a store")
        elif version != VERSION:
            raise InputError(
                str(self.path), "user_version", f"a store of version {version}, expected {VERSION}"
            )
        self._base.execute("PRAGMA synchronous = FULL")

    def _pragma(self, name: str) -> int:
        return int(self._base.execute(f"PRAGMA {name}").fetchone()[0])

    def close(self) -> None:
        """Close the file; what was stored stays."""
        self._base.close()

    def copy_to(self, path: Path) -> None:
        """A copy of everything that is stored now, even while a benchmark runs."""
        other = sqlite3.connect(path)
        with other:
            self._base.backup(other)
        other.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def place(self, entries: Iterable[Entry]) -> None:
        """Say which cells belong at which places; where inputs changed, a place gets another cell."""
        rows = list(entries)
        self._base.execute("BEGIN IMMEDIATE")
        self._base.executemany(
            "INSERT OR IGNORE INTO problem VALUES (?, ?)",
            [(entry.task.input_hash, entry.task.problem) for entry in rows],
        )
        self._base.executemany(
            "INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (p.suite, p.layer, p.arch, p.objective, p.part.value, p.method, p.seed, entry.count, key)
                for entry in rows
                for p, key in [(entry.place, entry.task.key)]
            ],
        )
        self._base.execute("COMMIT")

    def finished(self) -> set[str]:
        """Keys of the cells that have an answer; those that failed are to be run again."""
        return {key for (key,) in self._base.execute("SELECT key FROM cell WHERE status != 'error'")}

    def put(self, task: Task, answer: Answer) -> None:
        """Store a cell for good."""
        values = (
            task.key,
            task.input_hash,
            task.method,
            task.method_version,
            task.seed,
            task.seconds,
            task.threads,
            answer.status,
            answer.value_key,
            answer.bound_key,
            answer.value,
            answer.bound,
            answer.wall_s,
            answer.message,
            _json(answer.metrics),
            _json(answer.mapping),
            json.dumps(answer.trace),
            json.dumps(answer.versions),
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        marks = ", ".join("?" * len(_CELL))
        self._base.execute(f"INSERT OR REPLACE INTO cell ({', '.join(_CELL)}) VALUES ({marks})", values)

    def problem(self, hashed: str) -> ProblemRecord:
        """The problem of that input hash; raises ``KeyError``."""
        found = self._base.execute("SELECT record FROM problem WHERE hash = ?", (hashed,)).fetchone()
        if found is None:
            raise KeyError(hashed)
        return ProblemRecord.model_validate_json(found[0])

    def cells(self) -> Iterator[Cell]:
        """All cells that ever ended, those included whose inputs have changed since."""
        for row in self._base.execute(f"SELECT {', '.join(_CELL)} FROM cell ORDER BY key"):
            yield _cell(dict(zip(_CELL, row, strict=True)))

    def placed(self) -> list[Placed]:
        """Every place, in the order suite, layer, machine, objective, part, method, seed."""
        columns = "suite, layer, arch, objective, part, method, seed, count, key"
        rows = self._base.execute(f"SELECT {columns} FROM place ORDER BY {columns}").fetchall()
        cells = {cell.key: cell for cell in self.cells()}
        return [
            Placed(Place(suite, layer, arch, objective, Part(part), method, seed), count, key, cells.get(key))
            for suite, layer, arch, objective, part, method, seed, count, key in rows
        ]

    def optima(self) -> dict[str, Fraction]:
        """Proven optimal keys by input hash, whichever exact solver proved them."""
        rows = self._base.execute(
            "SELECT problem, value_key FROM cell WHERE status = 'optimal' AND value_key IS NOT NULL"
        )
        return {problem: Fraction(key) for problem, key in rows}


def _json(data: Any) -> str | None:
    return None if data is None else json.dumps(data)


def _cell(row: dict[str, Any]) -> Cell:
    def read(name: str) -> Any:
        return None if row[name] is None else json.loads(row[name])

    told = Answer(
        status=row["status"],
        value_key=row["value_key"],
        bound_key=row["bound_key"],
        value=row["value"],
        bound=row["bound"],
        wall_s=row["wall_s"],
        message=row["message"],
        metrics=read("metrics"),
        mapping=read("mapping"),
        trace=read("trace"),
        versions=read("versions"),
    )
    return Cell(
        key=row["key"],
        problem=row["problem"],
        method=row["method"],
        method_version=row["method_version"],
        seed=row["seed"],
        time_limit_s=row["time_limit_s"],
        threads=row["threads"],
        ended=row["ended"],
        answer=told,
    )
