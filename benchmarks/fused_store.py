"""The SQLite file that holds runs of ``bench --fuse``; each is committed the moment it ends.

A run is its fused document, so that whatever the table shows can be read and checked again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tilewright import __version__
from tilewright.api.mapping.fusion import FusedResult, NetworkFused
from tilewright.foundation.store import Column, Layout, SealedStore, Table, Values
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.fused_build import graph_record, space_record
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.operator import OperatorRecord


@dataclass(frozen=True)
class FusedRun:
    """One run that has to be in the store, or is there.

    Parameters
    ----------
    question : the network on its machine
    method, version : ``optimum`` for the search that proves, and the method's own version
    seed, limit, threads : how it runs; ``limit`` in seconds, ``None`` for none
    """

    question: NetworkFused
    method: str
    version: str
    seed: int
    limit: float | None
    threads: int

    @property
    def key(self) -> str:
        """Content hash of everything that the answer depends on, this program's version included."""
        problem = self.question.problem
        network = problem.network
        content = [
            __version__,
            [network.name, network.batch, graph_record(network).model_dump()],
            [
                [layer.name, OperatorRecord.of(layer.operator).model_dump(), [*layer.rows], layer.is_softmax]
                for layer in network.layers
                if layer.name in problem.layers
            ],
            [ArchRecord.of(problem.engine).hash, problem.model_name, str(problem.objective)],
            space_record(problem).stated(),
            [self.method, self.version, self.seed, self.limit, self.threads],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _stored(row: Values) -> tuple[FusedResult, float]:
    return FusedResult(FusedDocument.model_validate_json(row["document"])), row["seconds"]


_RUN = Table(
    "run",
    (
        Column("key", "TEXT NOT NULL", "content hash of all that the answer depends on"),
        Column("network", "TEXT NOT NULL"),
        Column("arch", "TEXT NOT NULL"),
        Column("objective", "TEXT NOT NULL"),
        Column("method", "TEXT NOT NULL"),
        Column("seed", "INTEGER NOT NULL"),
        Column("seconds", "REAL NOT NULL", "of the processor"),
        Column("document", "TEXT NOT NULL", "tilewright.fused/1"),
        Column("ended", "TEXT NOT NULL", "UTC"),
    ),
    _stored,
)
_LAYOUT = Layout(application=0x546C5766, version=1, tables=(_RUN,), name="a store of fused runs")  # "TlWf"


class FusedStore(SealedStore):
    """An open store, made where there is none; raises as `SealedStore` does."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _LAYOUT)

    def answer(self, run: FusedRun) -> tuple[FusedResult, float] | None:
        """What a run found, and its seconds of the processor; ``None`` for one that is still to come."""
        return self.find(_RUN, key=run.key)

    def put(self, run: FusedRun, result: FusedResult, seconds: float) -> None:
        """Store a run durably; if the file cannot be written it stays in memory, and `failure` says why."""
        self.add(
            _RUN,
            {
                "key": run.key,
                "network": run.question.problem.network.name,
                "arch": run.question.machine.name,
                "objective": str(run.question.problem.objective),
                "method": run.method,
                "seed": run.seed,
                "seconds": float(seconds),
                "document": json.dumps(result.to_dict()),
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
