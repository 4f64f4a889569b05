"""A store as rows: every run with how far it ended from the proven optimum and how fast it came there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from tilewright.benchmarks.cells import Part, Place, ProblemRecord
from tilewright.benchmarks.measures import Step, overhead, primal_integral, seconds_to
from tilewright.benchmarks.store import FinishedCell, Placed, Store
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.report.records.mapping.document import EffortRecord
from tilewright.report.records.mapping.operator import shape_text

CONTESTS = "arena"
"""The suite of `compare`'s runs, which are no mappings."""

MISSING = "missing"
"""Status of a cell that was planned and has not ended."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run.

    Parameters
    ----------
    optimum : the proven least value; ``None`` where nobody proved it
    gap : ``value / optimum - 1``
    seconds_10, seconds_1, seconds_0 : when it came within 10 %, 1 % and 0 % of the optimum, if it did
    primal_integral_s : Berthold's, over the time limit
    value_key : the exact objective key as a fraction
    nodes, nodes_per_s, trees, table_mb : what all methods of the run bounded or scored, how fast, and the
        searches and tables that they began; ``None`` for runs of versions that did not count
    peak_memory_mb : most that the worker held
    """

    suite: str
    layer: str
    shape: str
    count: int
    arch: str
    objective: str
    part: str
    method: str
    seed: int
    status: str
    value: float | None = None
    bound: float | None = None
    optimum: float | None = None
    gap: float | None = None
    seconds_10: float | None = None
    seconds_1: float | None = None
    seconds_0: float | None = None
    primal_integral_s: float | None = None
    wall_s: float | None = None
    time_limit_s: float | None = None
    energy_pj: float | None = None
    cycles: int | None = None
    utilization: float | None = None
    nodes: int | None = None
    nodes_per_s: float | None = None
    trees: int | None = None
    table_mb: float | None = None
    peak_memory_mb: float | None = None
    value_key: str | None = None
    method_version: str | None = None
    message: str = ""
    ended: str | None = None
    input_hash: str | None = None
    key: str = ""

    @property
    def is_method(self) -> bool:
        """Whether it is measured, rather than the proof that others are measured against."""
        return self.part == Part.METHOD

    @property
    def at(self) -> Place:
        """Where the run stands."""
        return Place(
            self.suite, self.layer, self.arch, self.objective, Part(self.part), self.method, self.seed
        )

    @property
    def problem(self) -> tuple[str, str, str, str]:
        """The problem's place: suite, layer, machine, objective."""
        return self.suite, self.layer, self.arch, self.objective


@dataclass(frozen=True, slots=True)
class Filters:
    """Which rows are wanted; an empty tuple lets everything pass.

    Parameters
    ----------
    layers : glob patterns
    """

    suites: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def apply(self, rows: Iterable[Row]) -> list[Row]:
        """The wanted rows.

        Raises
        ------
        InputError : for a name that no row has, with the nearest one that there is
        """
        rows = list(rows)
        for flag, field, wanted in (
            ("--suite", "suite", self.suites),
            ("--arch", "arch", self.archs),
            ("--objective", "objective", self.objectives),
            ("--method", "method", self.methods),
            ("--status", "status", self.statuses),
        ):
            if not wanted:
                continue
            known = sorted({getattr(row, field) for row in rows})
            for name in wanted:
                if name not in known:
                    raise InputError(flag, None, unknown_name(name, known))
            rows = [row for row in rows if getattr(row, field) in wanted]
        if self.seeds:
            rows = [row for row in rows if row.seed in self.seeds]
        if self.layers:
            known = sorted({row.layer for row in rows})
            for pattern in self.layers:
                if not any(fnmatchcase(name, pattern) for name in known):
                    raise InputError("--layer", None, unknown_name(pattern, known))
            rows = [row for row in rows if any(fnmatchcase(row.layer, p) for p in self.layers)]
        return rows


def read_rows(store: Store) -> list[Row]:
    """All rows of a store's mappings: the proof first, then the methods, problem by problem."""
    optima = store.optima()
    problems: dict[str, ProblemRecord] = {}
    rows = []
    for placed in store.placed():
        cell = placed.cell
        if placed.place.suite == CONTESTS:
            continue
        if cell is None:
            rows.append(_row(placed, ""))
            continue
        if cell.problem not in problems:
            problems[cell.problem] = store.problem(cell.problem)
        shape = shape_text(problems[cell.problem].operator.build("store"))
        rows.append(_row(placed, shape, cell, optima.get(cell.problem)))
    return sorted(rows, key=lambda row: (*row.problem, row.is_method, row.method, row.seed))


def steps_of(cell: FinishedCell) -> list[Step]:
    """The improvements of a run."""
    steps: list[Step] = []
    for seconds, key, *_ in cell.answer.trace:
        if key is not None and (not steps or Fraction(key) < steps[-1].key):
            steps.append(Step(seconds, Fraction(key)))
    return steps


def _row(
    placed: Placed, shape: str, cell: FinishedCell | None = None, optimum: Fraction | None = None
) -> Row:
    place = placed.place
    row = Row(
        suite=place.suite,
        layer=place.layer,
        shape=shape,
        count=placed.count,
        arch=place.arch,
        objective=place.objective,
        part=place.part.value,
        method=place.method,
        seed=place.seed,
        status=MISSING,
        key=placed.key,
    )
    if cell is None:
        return row
    answer, objective = cell.answer, parse_objective(place.objective)
    metrics = answer.metrics or {}
    judged = _judged(cell, optimum, objective.root)
    return replace(
        row,
        status=answer.status,
        value=answer.value,
        bound=answer.bound,
        optimum=None if optimum is None else float(objective.value(optimum)),
        gap=judged[0],
        seconds_10=judged[1],
        seconds_1=judged[2],
        seconds_0=judged[3],
        primal_integral_s=judged[4],
        wall_s=answer.wall_s,
        time_limit_s=cell.time_limit_s,
        energy_pj=metrics.get("energy_pj"),
        cycles=metrics.get("cycles"),
        utilization=metrics.get("utilization"),
        **_effort(answer.effort),
        value_key=answer.value_key,
        method_version=cell.method_version,
        message=answer.message,
        ended=cell.ended,
        input_hash=cell.problem,
        key=cell.key,
    )


def _effort(effort: dict[str, Any] | None) -> dict[str, Any]:
    """The effort of all methods of a run as fields of a row."""
    if effort is None:
        return {}
    record = EffortRecord.model_validate(effort)
    seconds = sum(method.seconds for method in record.methods if method.nodes)
    return {
        "nodes": record.nodes,
        "nodes_per_s": record.nodes / seconds if seconds > 0 else None,
        "trees": sum(method.trees for method in record.methods),
        "table_mb": sum(method.table_bytes for method in record.methods) / 1e6,
        "peak_memory_mb": record.peak_memory_bytes / 1e6 or None,
    }


def _judged(cell: FinishedCell, optimum: Fraction | None, root: int) -> Sequence[float | None]:
    """Gap, seconds to within 10 %, 1 % and 0 %, primal integral."""
    if optimum is None:
        return [None] * 5
    steps = steps_of(cell)
    gap = None if cell.value_key is None else overhead(cell.value_key, optimum, root)
    reached = [seconds_to(steps, optimum, Fraction(percent, 100), root) for percent in (10, 1, 0)]
    return [gap, *reached, primal_integral(steps, optimum, cell.time_limit_s, root)]
