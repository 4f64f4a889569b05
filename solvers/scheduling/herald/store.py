"""The cost tables on disk: what the mapping side has found, kept by content.

One SQLite file in the user's cache directory; ``TILEWRIGHT_CACHE`` names another directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType

import platformdirs

from tilewright.formulation.mapping.mapping import Mapping as LoopNest
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.hardware.mapping.styles import Dataflow
from tilewright.hardware.units import exact
from tilewright.solvers.mapping.machine_sizes import Point, Surveyed
from tilewright.workloads.errors import InputError
from tilewright.workloads.mapping.operator import Operator

VARIABLE = "TILEWRIGHT_CACHE"
_VERSION = 1  # raise when a survey's answers change
_FILE = f"costs-{_VERSION}.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS mappings (hash TEXT PRIMARY KEY, nodes TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS costs (
    survey TEXT, first INTEGER, second INTEGER, bandwidth TEXT, metric TEXT,
    energy TEXT, cycles INTEGER, memory INTEGER, weights INTEGER, mapping TEXT,
    PRIMARY KEY (survey, first, second, bandwidth, metric)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a layer costs at one point; fields as of `Surveyed`, the mapping by its hash."""

    energy: Fraction
    cycles: int
    memory: int
    weights: int
    mapping: str


Costs = dict[tuple[Point, str], Cost | None]


def cache_folder() -> Path:
    """Where the tables are kept."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(platformdirs.user_cache_dir("tilewright"))


def survey_hash(operator: Operator, flow: Dataflow, memory: int) -> str:
    """Content hash of everything that a survey's answers depend on, but for point and metric."""
    content = [
        [(d.name, d.bound, d.like) for d in operator.dimensions],
        [
            [t.name, t.role, [[[(x.dim, x.stride) for x in axis.terms], axis.size] for axis in t.axes]]
            for t in operator.tensors
        ],
        [(axis.name, axis.carries) for axis in flow.axes],
        engine_hash(flow.engine_of((1, 1), Fraction(1), memory)),
        flow.constraints(operator),
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class CostStore:
    """An open file of costs.  Use as a context manager.

    Parameters
    ----------
    folder : by default the user's cache directory

    Raises
    ------
    InputError : for a folder or file that cannot be used
    """

    def __init__(self, folder: Path | None = None) -> None:
        place = (folder or cache_folder()) / _FILE
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(place, timeout=30)
            self._file.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                str(place), None, f"cannot keep cost tables here ({error}), set {VARIABLE}"
            ) from None

    def __enter__(self) -> CostStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, survey: str) -> Costs:
        """Everything known of a survey; ``None`` where nothing fits the point."""
        rows = self._file.execute(
            "SELECT first, second, bandwidth, metric, energy, cycles, memory, weights, mapping"
            " FROM costs WHERE survey = ?",
            (survey,),
        )
        return {
            (Point((first, second), Fraction(rate)), metric): None
            if energy is None
            else Cost(Fraction(energy), cycles, memory, weights, mapping)
            for first, second, rate, metric, energy, cycles, memory, weights, mapping in rows
        }

    def mapping(self, name: str) -> LoopNest:
        """The mapping behind a cost."""
        (nodes,) = self._file.execute("SELECT nodes FROM mappings WHERE hash = ?", (name,)).fetchone()
        return LoopNest.from_data(json.loads(nodes))

    def write(
        self, survey: str, asked: Iterable[tuple[Point, str]], found: Mapping[tuple[Point, str], Surveyed]
    ) -> None:
        """Keep the answers of a survey; what was asked for and has none fits nowhere, and is kept as such."""
        rows: list[tuple[object, ...]] = []
        nodes: dict[str, str] = {}
        for point, metric in asked:
            best = found.get((point, metric))
            key = (survey, *point.array, exact(point.bandwidth), metric)
            if best is None:
                rows.append((*key, None, None, None, None, None))
                continue
            text = json.dumps(best.mapping.to_data(), separators=(",", ":"))
            name = hashlib.sha256(text.encode()).hexdigest()[:32]
            nodes[name] = text
            rows.append((*key, exact(best.energy), best.cycles, best.memory, best.weights, name))
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO mappings VALUES (?, ?)", [*nodes.items()])
            self._file.executemany("INSERT OR REPLACE INTO costs VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
