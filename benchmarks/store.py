"""The SQLite file that holds a benchmark's cells.  ``docs/benchmarking.md`` describes its tables.

Every cell is committed the moment it ends; killing the process loses no finished cell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer, Entry, Part, Place, ProblemRecord
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.foundation.store import Column, Layout, SealedStore, Table, Values
from tilewright.report.records.evidence import EVIDENCE


@dataclass(frozen=True)
class FinishedCell:
    """A finished cell.

    Parameters
    ----------
    evidence : hash of the stored evidence of the cell
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


def _cell(row: Values) -> FinishedCell:
    def read(name: str, kind: type) -> Any:
        data = None if row[name] is None else json.loads(row[name])
        if data is not None and not isinstance(data, kind):
            raise ValueError(f"expected {kind.__name__}, got {type(data).__name__}")
        return data

    answer = CellAnswer(
        status=Status(row["status"]).value,
        value_key=row["value_key"],
        bound_key=row["bound_key"],
        value=row["value"],
        bound=row["bound"],
        wall_s=row["wall_s"],
        message=row["message"],
        metrics=read("metrics", dict),
        mapping=read("mapping", list),
        trace=read("trace", list),
        versions=read("versions", dict),
        effort=read("effort", dict),
    )
    keys = [answer.value_key, answer.bound_key]
    for _, value, bound, *_ in answer.trace:
        keys += [value, bound]
    _ = [Fraction(key) for key in keys if key is not None]
    names = [field.name for field in fields(FinishedCell) if field.name != "answer"]
    return FinishedCell(**{name: row[name] for name in names}, answer=answer)


def _place(row: Values) -> Placed:
    place = {field.name: row[field.name] for field in fields(Place)}
    return Placed(Place(**{**place, "part": Part(row["part"])}), row["count"], row["key"], None)


_PROBLEM = Table(
    "problem",
    (
        Column("hash", "TEXT NOT NULL", "input hash"),
        Column("record", "TEXT NOT NULL", "operator, machine, cost model, objective, factors as JSON"),
    ),
    lambda row: str(row["record"]),
)
_CELL = Table(
    "cell",
    (
        Column("key", "TEXT NOT NULL", "content hash of all that the answer depends on"),
        Column("problem", "TEXT NOT NULL REFERENCES problem (hash)"),
        Column("method", "TEXT NOT NULL"),
        Column("method_version", "TEXT NOT NULL"),
        Column("seed", "INTEGER NOT NULL"),
        Column("time_limit_s", "REAL NOT NULL"),
        Column("threads", "INTEGER NOT NULL"),
        Column("status", "TEXT NOT NULL", "optimal, feasible, infeasible, unknown, error"),
        Column("value_key", "TEXT", "exact objective key of the best mapping, a fraction"),
        Column("bound_key", "TEXT"),
        Column("value", "REAL", "the objective as people read it"),
        Column("bound", "REAL"),
        Column("wall_s", "REAL NOT NULL"),
        Column("message", "TEXT NOT NULL"),
        Column("metrics", "TEXT", "as in the results document, JSON"),
        Column("mapping", "TEXT", "nodes, outermost first, JSON"),
        Column(
            "trace", "TEXT NOT NULL", "[[seconds, value key, bound key, source, improved, heuristic], ...]"
        ),
        Column("versions", "TEXT NOT NULL", "of this program and its libraries, JSON"),
        Column("ended", "TEXT NOT NULL", "UTC"),
        Column("evidence", "TEXT", "hash of what a document needs to prove the run, where there is any"),
        Column("effort", "TEXT", "as in the results document, JSON"),
    ),
    _cell,
    indexed=("problem",),
)
_PLACE = Table(
    "place",
    (
        Column("suite", "TEXT NOT NULL"),
        Column("layer", "TEXT NOT NULL"),
        Column("arch", "TEXT NOT NULL"),
        Column("objective", "TEXT NOT NULL"),
        Column("part", "TEXT NOT NULL"),
        Column("method", "TEXT NOT NULL"),
        Column("seed", "INTEGER NOT NULL"),
        Column("count", "INTEGER NOT NULL", "how often the suite's network has the layer"),
        Column("key", "TEXT NOT NULL", "the cell that belongs here by its inputs, there or still to come"),
    ),
    _place,
    keys=7,
    indexed=("key",),
)
_LAYOUT = Layout(
    application=0x546C5772,  # "TlWr"
    version=4,
    tables=(_PROBLEM, _CELL, _PLACE, EVIDENCE),
    name="a store",
    readable=(1, 2, 3),  # without seals; without evidence; without effort
)


class Store(SealedStore):
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
        if not create and not os.path.isfile(path):
            raise InputError(str(path), None, "no such file, expected a store that `tilewright bench` wrote")
        if not os.path.isdir(path.parent):
            raise InputError(str(path), None, f"cannot be written: no folder {path.parent}")
        super().__init__(path, _LAYOUT, create=create)

    def place(self, entries: Iterable[Entry]) -> None:
        """Assign cells to places; where inputs changed, a place gets another cell."""
        rows = list(entries)
        problems = [{"hash": entry.task.input_hash, "record": entry.task.problem} for entry in rows]
        places = [asdict(entry.place) | {"count": entry.count, "key": entry.task.key} for entry in rows]
        with self.transaction():
            self.add_all(_PROBLEM, problems, replace=False)
            self.add_all(_PLACE, places)

    def finished(self) -> set[str]:
        """Keys of the cells that have an answer; failed ones are run again."""
        return {cell.key for cell in self.cells() if cell.answer.status != "error"}

    def put(self, task: BenchmarkTask, answer: CellAnswer) -> None:
        """Store a cell durably; if the file cannot be written it stays in memory, and `failure` says why."""
        self.add(
            _CELL,
            {
                "key": task.key,
                "problem": task.input_hash,
                "method": task.method,
                "method_version": task.method_version,
                "seed": task.seed,
                "time_limit_s": float(task.seconds),
                "threads": task.threads,
                "status": answer.status,
                "value_key": answer.value_key,
                "bound_key": answer.bound_key,
                "value": _float(answer.value),
                "bound": _float(answer.bound),
                "wall_s": float(answer.wall_s),
                "message": answer.message,
                "metrics": _json(answer.metrics),
                "mapping": _json(answer.mapping),
                "trace": json.dumps(answer.trace),
                "versions": json.dumps(answer.versions),
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
                "evidence": None if answer.evidence is None else self.add_text(EVIDENCE, answer.evidence),
                "effort": _json(answer.effort),
            },
        )

    def problem(self, hashed: str) -> ProblemRecord:
        """The mapping problem of that input hash."""
        with self.reading(f"problem {hashed[:12]}"):
            return ProblemRecord.model_validate_json(self._problem_text(hashed))

    def is_contest(self, hashed: str) -> bool:
        """Whether the problem of that input hash is one of `compare`, whose documents report its runs."""
        with self.reading(f"problem {hashed[:12]}"):
            return "clock" in json.loads(self._problem_text(hashed))

    def _problem_text(self, hashed: str) -> str:
        text = self.find(_PROBLEM, hash=hashed)
        if text is None:
            raise self.damaged(f"problem {hashed[:12]}, which a cell names, is missing")
        return text

    def cells(self) -> Iterator[FinishedCell]:
        """All finished cells, including those whose inputs have changed since."""
        return self.items(_CELL, ["key"])

    def evidence(self, hashed: str) -> str | None:
        """The evidence of a run, by its hash."""
        return self.texts(EVIDENCE, [hashed]).get(hashed)

    def placed(self) -> list[Placed]:
        """Every place, in the order suite, layer, machine, objective, part, method, seed."""
        cells = {cell.key: cell for cell in self.cells()}
        return [replace(placed, cell=cells.get(placed.key)) for placed in self.items(_PLACE, _PLACE.names)]

    def optima(self) -> dict[str, Fraction]:
        """Proven optimal keys by input hash, whichever exact solver proved them."""
        return {
            cell.problem: cell.value_key
            for cell in self.cells()
            if cell.answer.status == "optimal" and cell.value_key is not None
        }


def _float(number: float | None) -> float | None:
    return None if number is None else float(number)


def _json(data: Any) -> str | None:
    return None if data is None else json.dumps(data)
