"""Plans from files: documents as they were written, and plans that a user or another program has made."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.errors import InputError
from tilewright.report.records.files import parse_kind, parse_record
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.report.records.scheduling.tiled.plan import MappedPlanRecord, PlanRecord, packed
from tilewright.report.records.scheduling.tiled.problem import TiledProblemRecord

_TASKS = ("engine", "first", "last")
_PARTS = {
    "transfers": ("block", "source", "target", "bytes", "first", "last"),
    "residency": ("block", "engine", "start", "end"),
}


@dataclass(frozen=True, eq=False)
class EditedPlan:
    """A plan to be evaluated.

    Parameters
    ----------
    record : the plan as far as the file has it
    answer : the same with its atoms
    is_open : whether movements and residency are derived
    """

    problem: TiledProblem
    objective: str
    record: PlanRecord
    answer: AtomicPlan
    is_open: bool

    def completed(self) -> AtomicPlan:
        """The whole plan; raises ``IllegalPlanError`` where tasks stand so that there is none."""
        if not self.is_open:
            return self.answer
        dag, plan = self.answer.dag, self.answer.plan
        return AtomicPlan(dag, complete(dag, self.problem.machine, plan.engine, plan.first))


def is_plan(data: object) -> bool:
    """Whether data look like a document of a plan on a tiled machine."""
    return PlanDocument.is_kind_of(data)


def parse_plan(data: dict[str, Any], where: str) -> PlanDocument:
    """The document that plain data hold; raises ``InputError``."""
    return parse_kind(data, where, PlanDocument)


def edited_plan(data: dict[str, Any], where: str, objective: str | None = None) -> EditedPlan:
    """The plan of a file of which only ``problem``, ``objective`` and ``plan`` count.

    A column may be a list of whole numbers in the place of its packed text.  ``tasks``, ``steps``, ``last``,
    counts and the number of a layer's atoms may be left out.  Without ``transfers`` and ``residency`` the
    plan is completed.

    Parameters
    ----------
    objective : instead of the file's

    Raises
    ------
    InputError : for a missing problem or plan, or columns that do not fit the layers
    """
    for field in ("problem", "plan"):
        if not isinstance(data.get(field), dict):
            raise InputError(where, field, "missing, there is nothing to evaluate")
    goal = objective or str(data.get("objective"))
    tiled_objective(goal, where, "objective")
    problem = read_problem(data["problem"], goal, where)
    reported = data["plan"]
    is_open = all(reported.get(name) is None for name in _PARTS)
    kind = MappedPlanRecord if "mappings" in reported else PlanRecord
    record = parse_record(_whole(reported, f"{where}: plan", is_open=is_open), kind, f"{where}: plan")
    return EditedPlan(problem, goal, record, record.build(problem, f"{where}: plan"), is_open)


def stated_again(edited: EditedPlan, problem: TiledProblem, where: str) -> EditedPlan:
    """The same plan for another problem; raises ``InputError`` where its atoms are none of that problem."""
    return replace(edited, problem=problem, answer=edited.record.build(problem, where))


def read_problem(data: object, objective: str, where: str) -> TiledProblem:
    """The problem of a document's data; raises ``InputError``."""
    record = parse_record(data, TiledProblemRecord, f"{where}: problem")
    return record.build(objective, f"{where}: problem")


def _whole(reported: MappingABC[str, Any], where: str, *, is_open: bool) -> dict[str, Any]:
    """A plan's data with lists packed and what may be left out filled in."""
    tasks, columns = _packed_columns(reported, _TASKS, where)
    made: dict[str, Any] = {**({} if tasks is None else {"tasks": tasks}), **reported, **columns}
    made.setdefault("last", made.get("first"))
    layers = reported.get("layers")
    if isinstance(layers, list):
        made["layers"] = [_counted(layer) if isinstance(layer, dict) else layer for layer in layers]
    ends = reported.get("last", reported.get("first"))
    if "steps" not in reported and isinstance(ends, list):
        made["steps"] = 1 + max(ends, default=0)
    for part, names in _PARTS.items():
        node = {name: [] for name in names} if is_open else reported.get(part)
        if isinstance(node, dict):
            rows, packed_ones = _packed_columns(node, names, f"{where}.{part}")
            made[part] = {**({} if rows is None else {"count": rows}), **node, **packed_ones}
    return made


def _counted(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer's borders with the number of its atoms, which evaluation does not read."""
    return {"atoms": 0, **layer}


def _packed_columns(
    node: MappingABC[str, Any], names: tuple[str, ...], where: str
) -> tuple[int | None, dict[str, str]]:
    """Rows of the columns that are lists (``None`` where there are none), and those columns packed."""
    columns: dict[str, str] = {}
    rows: int | None = None
    for name in names:
        column = node.get(name)
        if not isinstance(column, list):
            continue
        if not all(type(number) is int and -(2**31) <= number < 2**31 for number in column):
            raise InputError(where, name, "expected whole numbers of 32 bits")
        if rows is not None and len(column) != rows:
            raise InputError(where, name, f"expected {rows} numbers like the columns before it")
        rows = len(column)
        columns[name] = packed(np.array(column, dtype=np.int64))
    return rows, columns
