"""Cells of a benchmark: one method on one problem, as plain data that travels between processes.

A cell's key is the content hash of everything that its answer depends on.  Where it stands in a benchmark
(suite, layer, machine, ...) is its `Place`; two places may share a cell.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tilewright import __version__
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.report.records.mapping.build import factors_of
from tilewright.report.records.mapping.document import FactorsName
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.report.records.mapping.operator import OperatorRecord, Record


class Part(StrEnum):
    """What a cell is there for."""

    OPTIMUM = "optimum"  #: the proof that the others are measured against
    METHOD = "method"  #: a method that is measured


class ProblemRecord(Record):
    """A mapping problem in full."""

    operator: OperatorRecord
    arch: ArchRecord
    cost_model: str
    objective: str
    factors: FactorsName

    @classmethod
    def of(cls, problem: LayerProblem) -> ProblemRecord:
        """The record of a problem without constraints of the user."""
        return cls(
            operator=OperatorRecord.of(problem.operator),
            arch=ArchRecord.of(problem.engine),
            cost_model=problem.model.name,
            objective=str(problem.objective),
            factors=factors_of(problem),
        )

    def build(self, where: str) -> LayerProblem:
        """The problem; raises ``InputError`` where the record contradicts itself."""
        return layer_problem(
            self.operator.build(where),
            self.arch.build(where),
            parse_objective(self.objective),
            self.cost_model,
            factors=self.factors,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell stands in the table of a benchmark."""

    suite: str
    layer: str
    arch: str
    objective: str
    part: Part
    method: str
    seed: int

    def __str__(self) -> str:
        seed = f" seed {self.seed}" if self.seed else ""
        return f"{self.suite}/{self.layer} {self.arch} {self.objective} {self.method}{seed}"


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """What is to be computed.

    Parameters
    ----------
    problem : a `ProblemRecord` as JSON
    input_hash : of the problem
    seconds : time limit of the search, the statement of the problem included
    """

    problem: str
    input_hash: str
    method: str
    method_version: str
    seed: int
    seconds: float
    threads: int

    @property
    def key(self) -> str:
        """Content hash of everything that the answer depends on, this program's version included."""
        return self.key_of(__version__)

    def key_of(self, version: str) -> str:
        """The same hash for some version of this program."""
        content = [
            version,
            self.input_hash,
            self.method,
            self.method_version,
            self.seed,
            self.seconds,
            self.threads,
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell at its place, with how often the suite's network has the layer."""

    place: Place
    count: int
    task: BenchmarkTask


@dataclass(frozen=True, slots=True)
class CellAnswer:
    """What a cell found.  Keys are exact fractions as text.

    Parameters
    ----------
    trace : steps ``[seconds, value key, bound key, source, improved, heuristic]``
    metrics, mapping : as in the results document; ``None`` without a mapping
    effort : as in the results document; ``None`` for runs that are no mappings
    evidence : what a document needs to prove the run, as text, where that is more
    """

    status: str
    value_key: str | None = None
    bound_key: str | None = None
    value: float | None = None
    bound: float | None = None
    wall_s: float = 0.0
    message: str = ""
    metrics: dict[str, Any] | None = None
    mapping: list[dict[str, str | int]] | None = None
    trace: list[list[Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    effort: dict[str, Any] | None = None
    evidence: str | None = None
