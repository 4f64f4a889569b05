"""The SQLite file that holds a benchmark's cells.  ``docs/benchmarking.md`` describes its tables.

Every cell is committed the moment it ends; a process that is killed loses none that had ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer, Entry, Part, Place, ProblemRecord
from tilewright.formulation.result import Status
from tilewright.foundation.database import Database, Layout, seal
from tilewright.foundation.errors import InputError, OutputError
from tilewright.report.records import evidence

_TABLES = (
    """
CREATE TABLE problem (
    hash TEXT PRIMARY KEY,           -- input hash
    record TEXT NOT NULL,            -- operator, machine, cost model, objective, factors as JSON
    seal TEXT NOT NULL DEFAULT ''    -- SHA-256 of the row's other columns, here as in the other tables
) WITHOUT ROWID""",
    """
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
    ended TEXT NOT NULL,             -- UTC
    evidence TEXT,                   -- hash of what a document needs to prove the run, where there is any
    seal TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID""",
    """
CREATE TABLE place (
    suite TEXT, layer TEXT, arch TEXT, objective TEXT, part TEXT, method TEXT, seed INTEGER,
    count INTEGER NOT NULL,          -- how often the suite's network has the layer
    key TEXT NOT NULL,               -- the cell that belongs here by its inputs, there or still to come
    seal TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (suite, layer, arch, objective, part, method, seed)
) WITHOUT ROWID""",
    evidence.TABLE,
    "CREATE INDEX place_key ON place (key)",
    "CREATE INDEX cell_problem ON cell (problem)",
)
_LAYOUT = Layout(application=0x546C5772, version=3, tables=_TABLES, name="a store", readable=(1, 2))  # "TlWr"
"""Version 1 had no seals, version 2 no evidence; both are brought up when they are opened."""

_PROBLEM = ("hash", "record")
_PLACE = ("suite", "layer", "arch", "objective", "part", "method", "seed", "count", "key")

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
    "evidence",
)


@dataclass(frozen=True)
class FinishedCell:
    """A finished cell.

    Parameters
    ----------
    evidence : hash of what the store keeps to prove it
    """

    key: str
    problem: str
    method: str
    method_version: str
    seed: int
    time_limit_s: float
    threads: int
    ended: str
    evidence: str | None
    answer: CellAnswer

    @property
    def value_key(self) -> Fraction | None:
        return None if self.answer.value_key is None else Fraction(self.answer.value_key)


@dataclass(frozen=True)
class Placed:
    """A place of the benchmark and its cell, if that has ended."""

    place: Place
    count: int
    key: str
    cell: FinishedCell | None


class Store:
    """An open store.

    Parameters
    ----------
    create : make the file where there is none

    Raises
    ------
    InputError : for a file that cannot be opened, is no store of this version, or is damaged, here and from
        every method
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not os.path.isfile(path):
            raise InputError(str(path), None, "no such file, expected a store that `tilewright bench` wrote")
        if not os.path.isdir(path.parent):
            raise InputError(str(path), None, f"cannot be written: no folder {path.parent}")
        self._base = Database(path)
        try:
            self._open(create)
        except BaseException:
            self._base.close()
            raise

    def _open(self, create: bool) -> None:
        if self._base.adopt(_LAYOUT, create=create) != _LAYOUT.version:
            self._bring_up()
        self._base.rows("PRAGMA synchronous = FULL")

    def _bring_up(self) -> None:
        """Seal the rows of a store of version 1 as they stand, and give an older one room for evidence."""
        with self._base.transaction():
            version = self._base.number("user_version")
            if version == _LAYOUT.version:
                return
            if version == 1:
                for table, columns, keys in (("problem", _PROBLEM, 1), ("place", _PLACE, 7)):
                    self._base.rows(f"ALTER TABLE {table} ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
                    self._seal(
                        table, columns, keys, self._base.rows(f"SELECT {', '.join(columns)} FROM {table}")
                    )
                self._base.rows("ALTER TABLE cell ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
                cells = self._base.rows(f"SELECT {', '.join(_CELL[:-1])} FROM cell")
            else:
                cells = self._read("cell", _CELL[:-1], "")
            self._base.rows("ALTER TABLE cell ADD COLUMN evidence TEXT")
            self._seal("cell", _CELL, 1, [(*row, None) for row in cells])
            self._base.rows(evidence.TABLE)
            self._base.rows(f"PRAGMA user_version = {_LAYOUT.version}")

    def _seal(self, table: str, columns: tuple[str, ...], keys: int, rows: list[tuple[Any, ...]]) -> None:
        """Seal the rows of a table, known by their first columns."""
        chosen = " AND ".join(f"{key} = ?" for key in columns[:keys])
        self._base.run_many(
            f"UPDATE {table} SET seal = ? WHERE {chosen}", [(seal(row), *row[:keys]) for row in rows]
        )

    def close(self) -> None:
        """Close the file; what was stored stays."""
        self._base.close()

    def copy_to(self, path: Path) -> None:
        """A copy of everything that is stored now, even while a benchmark runs."""
        self._base.copy_to(path)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def place(self, entries: Iterable[Entry]) -> None:
        """Say which cells belong at which places; where inputs changed, a place gets another cell."""
        rows = list(entries)
        with self._base.transaction():
            self._base.run_many(
                "INSERT OR IGNORE INTO problem VALUES (?, ?, ?)",
                [_sealed((entry.task.input_hash, entry.task.problem)) for entry in rows],
            )
            self._base.run_many(
                "INSERT OR REPLACE INTO place (" + ", ".join(_PLACE) + ", seal)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    _sealed(
                        (p.suite, p.layer, p.arch, p.objective, p.part.value, p.method, p.seed, count, key)
                    )
                    for entry in rows
                    for p, count, key in [(entry.place, entry.count, entry.task.key)]
                ],
            )

    @property
    def failure(self) -> OutputError | None:
        """Why cells are in memory alone; ``None`` where the file has all of them."""
        return self._base.failure

    def finished(self) -> set[str]:
        """Keys of the cells that have an answer; those that failed are to be run again."""
        return {cell.key for cell in self.cells() if cell.answer.status != "error"}

    def put(self, task: BenchmarkTask, answer: CellAnswer) -> None:
        """Store a cell for good; where the file takes none it stays in memory, and `failure` says why."""
        values = (
            task.key,
            task.input_hash,
            task.method,
            task.method_version,
            task.seed,
            float(task.seconds),
            task.threads,
            answer.status,
            answer.value_key,
            answer.bound_key,
            _float(answer.value),
            _float(answer.bound),
            float(answer.wall_s),
            answer.message,
            _json(answer.metrics),
            _json(answer.mapping),
            json.dumps(answer.trace),
            json.dumps(answer.versions),
            datetime.now(UTC).isoformat(timespec="seconds"),
            None if answer.evidence is None else evidence.keep(self._base, answer.evidence),
        )
        marks = ", ".join("?" * (len(_CELL) + 1))
        self._base.keep(
            f"INSERT OR REPLACE INTO cell ({', '.join(_CELL)}, seal) VALUES ({marks})", _sealed(values)
        )

    def problem(self, hashed: str) -> ProblemRecord:
        """The mapping problem of that input hash."""
        with self._base.reading(f"problem {hashed[:12]}"):
            return ProblemRecord.model_validate_json(self._problem_text(hashed))

    def is_contest(self, hashed: str) -> bool:
        """Whether the problem of that input hash is one of `compare`, whose documents tell of its runs."""
        with self._base.reading(f"problem {hashed[:12]}"):
            return "clock" in json.loads(self._problem_text(hashed))

    def _problem_text(self, hashed: str) -> str:
        stored = self._read("problem", _PROBLEM, "WHERE hash = ?", (hashed,))
        if not stored:
            raise self._base.damaged(f"problem {hashed[:12]}, which a cell names, is missing")
        return str(stored[0][1])

    def cells(self) -> Iterator[FinishedCell]:
        """All cells that ever ended, those included whose inputs have changed since."""
        for row in self._read("cell", _CELL, "ORDER BY key"):
            with self._base.reading(f"cell {str(row[0])[:12]}"):
                cell = _cell(dict(zip(_CELL, row, strict=True)))
            yield cell

    def evidence(self, hashed: str) -> str | None:
        """What is kept to prove a run, by its hash."""
        return evidence.kept(self._base, hashed)

    def placed(self) -> list[Placed]:
        """Every place, in the order suite, layer, machine, objective, part, method, seed."""
        rows = self._read("place", _PLACE, f"ORDER BY {', '.join(_PLACE)}")
        cells = {cell.key: cell for cell in self.cells()}
        placed = []
        for suite, layer, arch, objective, part, method, seed, count, key in rows:
            with self._base.reading(f"place {suite}/{layer} {arch} {objective} {method}"):
                place = Place(suite, layer, arch, objective, Part(part), method, seed)
            placed.append(Placed(place, count, key, cells.get(key)))
        return placed

    def optima(self) -> dict[str, Fraction]:
        """Proven optimal keys by input hash, whichever exact solver proved them."""
        return {
            cell.problem: cell.value_key
            for cell in self.cells()
            if cell.answer.status == "optimal" and cell.value_key is not None
        }

    def _read(
        self, table: str, columns: tuple[str, ...], rest: str, values: tuple[object, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """Rows of a table whose seals hold; raises ``DamagedError`` for the first whose seal does not."""
        sealed = self._base.rows(f"SELECT {', '.join(columns)}, seal FROM {table} {rest}", values)
        for row in sealed:
            if row[-1] != seal(row[:-1]):
                raise self._base.damaged(f"table {table}: a row does not match its hash: {row[0]}"[:200])
        return [row[:-1] for row in sealed]


def _sealed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*values, seal(values))


def _float(number: float | None) -> float | None:
    return None if number is None else float(number)


def _json(data: Any) -> str | None:
    return None if data is None else json.dumps(data)


def _cell(row: dict[str, Any]) -> FinishedCell:
    def read(name: str) -> Any:
        return None if row[name] is None else json.loads(row[name])

    for field in ("value_key", "bound_key"):
        if row[field] is not None:
            Fraction(row[field])
    reported = CellAnswer(
        status=Status(row["status"]).value,
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
    for data, kind in (
        (reported.metrics, dict),
        (reported.mapping, list),
        (reported.trace, list),
        (reported.versions, dict),
    ):
        if data is not None and not isinstance(data, kind):
            raise ValueError(f"expected {kind.__name__}, got {type(data).__name__}")
    for _, value, bound, *_ in reported.trace:
        _ = [Fraction(key) for key in (value, bound) if key is not None]
    return FinishedCell(
        key=row["key"],
        problem=row["problem"],
        method=row["method"],
        method_version=row["method_version"],
        seed=row["seed"],
        time_limit_s=row["time_limit_s"],
        threads=row["threads"],
        ended=row["ended"],
        evidence=row["evidence"],
        answer=reported,
    )
