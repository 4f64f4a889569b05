"""From a solution of the whole statement to a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.tiled.plan import Plan, make_residency, make_transfers
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.cpsat_run import Values
from tilewright.solvers.scheduling.tiled.exact.variables import PlanStatement

Key = TypeVar("Key")


def plan_of(statement: PlanStatement, values: Values) -> Plan:
    """The plan of a solution; rounds are its steps."""
    instance = statement.instance

    engine = np.zeros(instance.tasks, dtype=np.int32)
    step = np.zeros(instance.tasks, dtype=np.int32)
    for task, e, r in true(statement.runs, values):
        engine[task], step[task] = e, r
    moved = true(statement.moves, values) + true(statement.written, values)
    block, source, target, when = _columns(moved, 4)
    steps = int(max(step.max(), when.max(initial=0))) + 1
    begins = {(t, int(engine[t]), int(step[t])) for t in range(instance.tasks)}
    begins.update(true(statement.arrives, values))
    stays: list[tuple[int, int, int]] = true(statement.held, values)
    held = _residencies(stays, begins, steps)
    transfers = make_transfers(
        instance.engines, block, source, target, instance.dag.block_bytes[block], when, when
    )
    return Plan(engine, step, step.copy(), transfers, make_residency(*_columns(held, 4)), steps)


def true(literals: Mapping[Key, cp_model.IntVar], values: Values) -> list[Key]:
    """What a solution decides for."""
    return [key for key, literal in literals.items() if values.boolean_value(literal)]


def _columns(rows: Iterable[tuple[int, ...]], width: int) -> list[Int64s]:
    table = np.array([*rows], dtype=np.int64).reshape(-1, width)
    return [np.ascontiguousarray(table[:, i]) for i in range(width)]


def _residencies(
    held: Iterable[tuple[int, int, int]], begins: set[tuple[int, int, int]], steps: int
) -> list[tuple[int, int, int, int]]:
    """(block, engine, start, end) of unbroken holdings; a new arrival begins a new one."""
    stays: list[tuple[int, int, int, int]] = []
    for block, e, r in sorted(held):
        if r >= steps:
            continue
        if stays and stays[-1][:2] == (block, e) and stays[-1][3] == r - 1 and (block, e, r) not in begins:
            stays[-1] = (block, e, stays[-1][2], r)
        else:
            stays.append((block, e, r, r))
    return stays


def hint(statement: PlanStatement, plan: Plan) -> None:
    """Begin with a round plan: every decision that it makes, as far as the statement has a literal for it."""
    model, moving, held = statement.model, plan.transfers, plan.residency
    engines = statement.instance.engines
    runs = {(t, int(e), int(r)) for t, (e, r) in enumerate(zip(plan.engine, plan.first, strict=True))}
    stays = {
        (int(b), int(e), r)
        for b, e, start, end in zip(held.block, held.engine, held.start, held.end, strict=True)
        for r in range(int(start), int(end) + 1)
    }
    moves: set[tuple[int, ...]] = set()
    writes: set[tuple[int, ...]] = set()
    for b, source, target, r in zip(moving.block, moving.source, moving.target, moving.first, strict=True):
        (writes if target >= engines else moves).add((int(b), int(source), int(target), int(r)))
    arrivals = {(b, e, r) for b, _, e, r in moves}
    for chosen, triples in ((runs, statement.runs), (stays, statement.held), (arrivals, statement.arrives)):
        for triple, literal in triples.items():
            model.add_hint(literal, triple in chosen)
    for movements, quadruples in ((moves, statement.moves), (writes, statement.written)):
        for quadruple, literal in quadruples.items():
            model.add_hint(literal, quadruple in movements)
