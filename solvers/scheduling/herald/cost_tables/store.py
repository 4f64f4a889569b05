"""The cost tables on disk: what the mapping side has found, cached by content."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.database import PATIENCE
from tilewright.foundation.store import Column, Layout, Table, Texts, Values
from tilewright.foundation.units import exact
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.hardware.mapping.styles import DataflowStyle
from tilewright.solvers.mapping.machine_sizes import BestMapping, MachineSize
from tilewright.solvers.scheduling.herald.cost_tables.evidence import Cost
from tilewright.solvers.scheduling.own_costs import operator_content
from tilewright.solvers.scheduling.shelf import CacheStore
from tilewright.workloads.mapping.operator import Operator

_VERSION = 3  # raise when the answers change
_FILE = f"costs-{_VERSION}.sqlite"
Costs = dict[tuple[MachineSize, str], Cost | None]


def costs_digest(operator: Operator, flow: DataflowStyle, memory: int) -> str:
    """Content hash of everything that a layer's costs depend on, but for machine size and metric."""
    content = [
        *operator_content(operator),
        [(axis.name, axis.carries) for axis in flow.axes],
        engine_hash(fitted(flow.engine_of((1, 1), Fraction(1), memory), operator)),
        [demand.text for demand in style_demands(flow.fixes(operator))],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True)
class _CostRow:
    """A cost that names its mapping; no figures where nothing fits."""

    key: tuple[MachineSize, str]
    energy: Fraction
    cycles: int
    memory: int
    weights: int
    mapping: str | None


def _cost_row(row: Values) -> _CostRow:
    key = MachineSize((row["first"], row["second"]), Fraction(row["bandwidth"])), row["metric"]
    if row["mapping"] is None:
        return _CostRow(key, Fraction(0), 0, 0, 0, None)
    figures = Fraction(row["energy"]), int(row["cycles"]), int(row["memory"]), int(row["weights"])
    return _CostRow(key, *figures, row["mapping"])


_COSTS = Table(
    "costs",
    (
        Column("survey", "TEXT NOT NULL", "content hash of layer, dataflow and memory"),
        Column("first", "INTEGER NOT NULL", "PEs along the first axis"),
        Column("second", "INTEGER NOT NULL"),
        Column("bandwidth", "TEXT NOT NULL", "a fraction"),
        Column("metric", "TEXT NOT NULL"),
        Column("energy", "TEXT", "pJ, a fraction; here and from here on null where nothing fits"),
        Column("cycles", "INTEGER"),
        Column("memory", "INTEGER", "bytes"),
        Column("weights", "INTEGER", "bytes of the first weights"),
        Column("mapping", "TEXT", "its hash"),
    ),
    _cost_row,
    keys=5,
)
_MAPPINGS = Texts("mappings", "nodes", digits=32)
_LAYOUT = Layout(0, 0, (_COSTS, _MAPPINGS), "a file of cost tables", is_cache=True)


class CostStore(CacheStore):
    """An open file of costs; parameters and errors as of `CacheStore`.  Use as a context manager.

    A row whose seal does not match, or whose mapping is missing, is skipped as if it had never been written,
    and counted in `refused`.
    """

    def __init__(
        self,
        folder: Path | None = None,
        patience: Callable[[], float] = lambda: PATIENCE,
        stop: threading.Event | None = None,
    ) -> None:
        super().__init__(folder, _FILE, _LAYOUT, patience, stop)

    def read(self, digest: str) -> Costs:
        """All stored costs of a layer; ``None`` where nothing fits the machine."""
        rows = list(self.items(_COSTS, survey=digest))
        nodes = self.texts(_MAPPINGS, {row.mapping for row in rows if row.mapping is not None})
        mappings: dict[str | None, Mapping] = {}
        for name, text in nodes.items():
            with suppress(ValueError, TypeError, ArithmeticError, LookupError):
                mappings[name] = Mapping.from_data(json.loads(text))
        costs: Costs = {}
        for row in rows:
            if row.mapping is None:
                costs[row.key] = None
            elif row.mapping in mappings:
                mapping = mappings[row.mapping]
                costs[row.key] = Cost(row.energy, row.cycles, row.memory, row.weights, mapping)
            else:
                self.refused += 1
        return costs

    def forget(self, digest: str) -> None:
        """Delete the stored costs of a layer."""
        self.drop(_COSTS, survey=digest)

    def write(
        self,
        digest: str,
        asked: Iterable[tuple[MachineSize, str]],
        answers: MappingABC[tuple[MachineSize, str], BestMapping],
    ) -> None:
        """Store the answers for a layer; asked without an answer means that nothing fits."""
        rows: list[Values] = []
        texts: set[str] = set()
        for point, metric in asked:
            best = answers.get((point, metric))
            row: dict[str, object] = dict.fromkeys(_COSTS.names)
            row["survey"], (row["first"], row["second"]) = digest, point.array
            row["bandwidth"], row["metric"] = exact(point.bandwidth), metric
            if best is not None:
                text = json.dumps(best.mapping.to_data(), separators=(",", ":"))
                row["energy"], row["cycles"] = exact(best.energy), best.cycles
                row["memory"], row["weights"] = best.memory, best.weights
                row["mapping"] = _MAPPINGS.hash_of(text)
                texts.add(text)
            rows.append(row)
        with self.transaction():
            self.add_texts(_MAPPINGS, texts)
            self.add_all(_COSTS, rows)
