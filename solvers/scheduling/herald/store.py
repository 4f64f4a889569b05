"""The cost tables on disk: what the mapping side has found, kept by content.

One SQLite file in the user's cache directory; ``TILEWRIGHT_CACHE`` names another directory.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingABC
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.formulation.mapping.dataflow import style_demands
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.caches import VARIABLE, cache_folder
from tilewright.foundation.database import PATIENCE, DamagedError, Database, LockedError, seal
from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.units import exact
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.hardware.mapping.styles import DataflowStyle
from tilewright.solvers.mapping.machine_sizes import BestMapping, MachineSize
from tilewright.solvers.scheduling.herald.evidence import Cost
from tilewright.workloads.mapping.operator import Operator

_VERSION = 3  # raise when the answers change
_FILE = f"costs-{_VERSION}.sqlite"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS mappings (hash TEXT PRIMARY KEY, nodes TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS costs (
    survey TEXT, first INTEGER, second INTEGER, bandwidth TEXT, metric TEXT,
    energy TEXT, cycles INTEGER, memory INTEGER, weights INTEGER, mapping TEXT, seal TEXT,
    PRIMARY KEY (survey, first, second, bandwidth, metric)
) WITHOUT ROWID""",
)
_COLUMNS = "survey, first, second, bandwidth, metric, energy, cycles, memory, weights, mapping"

Costs = dict[tuple[MachineSize, str], Cost | None]


def costs_digest(operator: Operator, flow: DataflowStyle, memory: int) -> str:
    """Content hash of everything that a layer's costs depend on, but for machine size and metric."""
    content = [
        [(d.name, d.bound, d.like) for d in operator.dimensions],
        [
            [t.name, t.role, [[[(x.dim, x.stride) for x in axis.terms], axis.size] for axis in t.axes]]
            for t in operator.tensors
        ],
        [(axis.name, axis.carries) for axis in flow.axes],
        engine_hash(flow.engine_of((1, 1), Fraction(1), memory)),
        [demand.text for demand in style_demands(flow.fixes(operator))],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class CostStore:
    """An open file of costs.  Use as a context manager.

    Rows are sealed; one whose seal does not fit what it holds, or whose mapping is gone, is passed over as if
    it had never been written.

    Parameters
    ----------
    folder : by default the user's cache directory
    patience, stop : for locks (`tilewright.foundation.database`)

    Attributes
    ----------
    refused : how many rows were passed over

    Raises
    ------
    LockedError, DamagedError : where another program holds the file, or it is damaged; here and from every
        method
    InputError : for a folder or file that cannot be used
    """

    def __init__(
        self,
        folder: Path | None = None,
        patience: Callable[[], float] = lambda: PATIENCE,
        stop: threading.Event | None = None,
    ) -> None:
        self.path = Path(_FILE)
        self.refused = 0
        try:
            self.path = (folder or cache_folder()) / _FILE
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._base = Database(self.path, patience, stop)
            try:
                for table in _TABLES:
                    self._base.rows(table)
            except BaseException:
                self._base.close()
                raise
        except (LockedError, DamagedError):
            raise
        except (OSError, InputError) as error:
            reason = error.message if isinstance(error, InputError) else one_line(error)
            raise InputError(
                str(self.path), None, f"cannot keep cost tables here ({reason}), remove it or set {VARIABLE}"
            ) from None

    def __enter__(self) -> CostStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def read(self, digest: str) -> Costs:
        """Everything known of a layer; ``None`` where nothing fits the machine."""
        costs: Costs = {}
        for *columns, sealed, nodes in self._base.rows(
            f"SELECT {_COLUMNS}, costs.seal, nodes FROM costs"
            " LEFT JOIN mappings ON hash = mapping WHERE survey = ?",
            (digest,),
        ):
            try:
                key, cost = _cost(columns, sealed, nodes)
            except (ValueError, TypeError, ArithmeticError, LookupError):
                self.refused += 1
            else:
                costs[key] = cost
        return costs

    def forget(self, digest: str) -> None:
        """Drop everything known of a layer."""
        self._base.rows("DELETE FROM costs WHERE survey = ?", (digest,))

    def write(
        self,
        digest: str,
        asked: Iterable[tuple[MachineSize, str]],
        found: MappingABC[tuple[MachineSize, str], BestMapping],
    ) -> None:
        """Keep the answers for a layer; what was asked for and has none fits nowhere, and is kept as such."""
        rows: list[tuple[object, ...]] = []
        nodes: dict[str, str] = {}
        for point, metric in asked:
            best = found.get((point, metric))
            row: tuple[object, ...] = (digest, *point.array, exact(point.bandwidth), metric)
            if best is None:
                row = (*row, None, None, None, None, None)
            else:
                text = json.dumps(best.mapping.to_data(), separators=(",", ":"))
                name = _name(text)
                nodes[name] = text
                row = (*row, exact(best.energy), best.cycles, best.memory, best.weights, name)
            rows.append((*row, seal(row)))
        with self._base.transaction():
            self._base.run_many("INSERT OR REPLACE INTO mappings VALUES (?, ?)", nodes.items())
            self._base.run_many(f"INSERT OR REPLACE INTO costs VALUES ({', '.join('?' * 11)})", rows)


def _name(nodes: str) -> str:
    return hashlib.sha256(nodes.encode()).hexdigest()[:32]


def _cost(columns: list[Any], sealed: str, nodes: str | None) -> tuple[tuple[MachineSize, str], Cost | None]:
    """A row; raises ``ValueError`` and the like where it is not what was written."""
    if seal(columns) != sealed:
        raise ValueError("the seal does not fit")
    _, first, second, rate, metric, energy, cycles, memory, weights, mapping = columns
    key = MachineSize((first, second), Fraction(rate)), metric
    if mapping is None:
        return key, None
    if nodes is None or _name(nodes) != mapping:
        raise ValueError("the mapping does not fit")
    return key, Cost(
        Fraction(energy), int(cycles), int(memory), int(weights), Mapping.from_data(json.loads(nodes))
    )
