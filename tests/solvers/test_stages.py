"""Stages and tables: refinements that leave nothing out, and ends that are exact per group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles import columns
from tilewright.formulation.mapping.tiles.tables import Tables, local_nodes
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables import staged_tables
from tilewright.solvers.mapping.tables.staged_tables import StagedTable, decisive
from tilewright.solvers.mapping.tables.stages import Stage, stages_of
from tilewright.workloads.mapping.operators import conv2d

INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=24, largest=50_000)
)


def roots(problem: LayerProblem) -> list[Expr]:
    statement = problem.statement
    return [statement.energy, statement.cycles, *(limit.expr for limit in problem.limits)]


@settings(max_examples=effort(40))
@given(INSTANCES, st.booleans(), st.booleans())
def test_stages_decide_everything_once(instance: Instance, inner_first: bool, spread_first: bool) -> None:
    """Each selector is decided by one stage, and each boundary of the nest too, from the outside inwards.

    Where inner tiles come first, each once, besides roughly.
    """
    space = instance.problem().space
    stages = stages_of(space, spread_first, inner_first)
    selectors = [selector for stage in stages for selector in stage.selectors]
    assert len(selectors) == len(set(selectors))
    assert set(selectors) == set(space.selectors)
    boundaries = [boundary for stage in stages if not stage.coarse for boundary in stage.boundaries]
    assert (sorted(boundaries) if inner_first else boundaries) == list(range(1, len(space.nest.boundaries)))


def test_stages_of_the_papers_machine() -> None:
    """SPM tiles with the DRAM order, then the spatial split, then register tiles with the SPM order."""
    operator = conv2d(k=8, c=8, p=4, q=4, r=3, s=3)
    problem = Instance(operator, load_engine("dmazerunner-256"), "edp").problem()
    named = [(s.name, [v.name for v in s.selectors]) for s in stages_of(problem.space)]
    assert named == [
        ("tile of SPM", ["order@DRAM"]),
        ("spread below SPM", []),
        ("tile of RF", ["order@SPM"]),
        ("innermost loops", []),
    ]


@contextmanager
def as_large(large: bool, nearly: float) -> Iterator[None]:
    """Take all groups for large ones, where a stage decides what splits few more cells than it has."""
    with pytest.MonkeyPatch.context() as patched:
        if large:
            patched.setattr(columns, "LARGE", 0)
            patched.setattr(columns, "_FEWER", 1)
            patched.setattr(staged_tables, "_VERY_LARGE", 0)
            patched.setattr(staged_tables, "_NEARLY", nearly)
        yield


@settings(max_examples=effort(24))
@given(INSTANCES, st.booleans(), st.booleans(), st.sampled_from([0.3, 0.8]))
def test_cells_are_nested_and_their_ends_exact(
    instance: Instance, spread_first: bool, large: bool, nearly: float
) -> None:
    """Cells of a stage part the rows, inner cells part outer ones, ends are minima and maxima over rows.

    At the last stage every cell is one row.
    """
    with as_large(large, nearly):
        compare_cells(instance.problem(), spread_first)


@settings(max_examples=effort(12))
@given(INSTANCES, st.sampled_from([0.1, 0.5]))
def test_stages_that_split_several_at_once_leave_nothing_out(instance: Instance, nearly: float) -> None:
    """Branch and bound finds the optimum where stages decide what others would behind them."""
    plain = solve(instance.problem(), "branch")
    with as_large(True, nearly):
        merged = solve(instance.problem(), "branch")
    assert (merged.status, merged.key, merged.bound) == (plain.status, plain.key, plain.bound)


def compare_cells(problem: LayerProblem, spread_first: bool) -> None:
    """Cells and their ends with the rows."""
    stages = stages_of(problem.space, spread_first)
    for table in Tables(problem.space.groups, roots(problem)).tables:
        staged = StagedTable(table, problem.space.nest, stages)
        count = len(table)
        assert sorted(map(tuple, staged.table.group.rows.tolist())) == sorted(
            map(tuple, table.group.rows.tolist())
        )
        if not count:
            continue
        for node, values in staged.table.values.items():
            assert staged.bounds(node, low=True)[staged.offsets[0]] == values.min()
            assert staged.bounds(node, low=False)[staged.offsets[0]] == values.max()
        assert staged.starts[-1].tolist() == list(range(count))
        for stage, starts in enumerate(staged.starts):
            ends = [*starts[1:].tolist(), count]
            for cell, (first, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
                place = staged.offsets[stage + 1] + cell
                for node, values in staged.table.values.items():
                    assert staged.bounds(node, low=True)[place] == values[first:end].min()
                    assert staged.bounds(node, low=False)[place] == values[first:end].max()
            if stage + 1 < len(staged.starts):
                inner = staged.starts[stage + 1]
                children = staged.children[stage]
                assert inner[children[:-1]].tolist() == starts.tolist()
                assert children[-1] == len(inner)


@settings(max_examples=effort(6))
@given(INSTANCES)
def test_bounds_that_are_kept_stay_as_they_are(instance: Instance) -> None:
    """Bounds are the same the second time, whatever somebody does with those that were given out."""
    problem = instance.problem()
    stages = stages_of(problem.space)
    for table in Tables(problem.space.groups, roots(problem)).tables:
        staged = StagedTable(table, problem.space.nest, stages)
        for node in staged.table.values if len(table) else ():
            first = staged.bounds(node, low=True)
            expected = first.copy()
            first[:] = -1
            into = np.empty(staged.size())
            assert staged.bounds(node, low=True, into=into) is into
            into[:], again = -2, staged.bounds(node, low=True)
            assert np.array_equal(again, expected)
            assert (staged.bounds(node, low=False) >= expected).all()
            within = staged.in_stages([0])
            assert np.array_equal(within.bounds(node, low=True), expected[: within.size()])


@settings(max_examples=effort(24))
@given(INSTANCES, st.booleans())
def test_stages_that_decide_nothing_are_left_out(instance: Instance, spread_first: bool) -> None:
    """What is left has its cells and bounds, and ends with single rows; the others added no cell."""
    problem = instance.problem()
    stages, nest = stages_of(problem.space, spread_first), problem.space.nest
    tables = Tables(problem.space.groups, roots(problem)).tables
    before = [StagedTable(table, nest, stages) for table in tables]
    kept, after = decisive(before, stages)
    places = [stages.index(stage) for stage in kept]
    for number, stage in enumerate(stages):
        cells = [[1, *map(len, staged.starts)][number : number + 2] for staged in before]
        idle = not stage.selectors and all(outer == inner for outer, inner in cells)
        assert (number not in places) == idle or len(kept) == 1
    for full, part in zip(before, after, strict=True):
        assert len(part.starts) == len(kept)
        for node in full.table.values if len(full.table) else ():
            for low in (True, False):
                own, whole = part.bounds(node, low), full.bounds(node, low)
                for here, there in enumerate(places):
                    count = len(part.starts[here])
                    assert part.starts[here].tolist() == full.starts[there].tolist()
                    at, of = part.offsets[here + 1], full.offsets[there + 1]
                    assert own[at : at + count].tolist() == whole[of : of + count].tolist()
        assert part.starts[-1].tolist() == list(range(len(full.table)))


@settings(max_examples=effort(24))
@given(INSTANCES)
def test_rows_are_sorted_by_all_that_stages_decide(instance: Instance) -> None:
    """Two rows share a cell if and only if no stage so far tells them apart, by plain comparison."""
    problem = instance.problem()
    stages, nest = stages_of(problem.space), problem.space.nest
    for table in Tables(problem.space.groups, roots(problem)).tables:
        staged = StagedTable(table, nest, stages)
        rows = staged.table.group.rows.tolist()
        names = staged.table.group.variables
        told: list[tuple[int, ...]] = [()] * len(rows)
        for stage, starts in zip(stages, staged.starts, strict=True):
            for number, row in enumerate(rows):
                told[number] += _decisions(dict(zip(names, row, strict=True)), table.group.dims, nest, stage)
            changes = [
                number for number in range(len(rows)) if not number or told[number] != told[number - 1]
            ]
            assert starts.tolist() == changes
            assert len({told[at] for at in changes}) == len(changes)
        assert told == sorted(told)


def _decisions(tiles: dict[Variable, int], dims: Iterable[str], nest: Nest, stage: Stage) -> tuple[int, ...]:
    """What a stage decides of a row, as numbers."""
    decided: list[int] = []
    for dim in dims:
        sizes = [evaluate(boundary[dim], tiles) for boundary in nest.boundaries]
        trips = [
            -(-sizes[index] // sizes[index + 1])
            for index, block in enumerate(nest.blocks)
            if block.axis is not None and block.level == stage.spread
        ]
        exact = [sizes[boundary] for boundary in stage.boundaries]
        if stage.coarse:
            trips = [_power(2, math.prod(trips))] if trips else []
            exact = [_power(stage.coarse, size) for size in exact]
        decided += [*trips, *exact]
    return tuple(decided)


def _power(base: float, size: int) -> int:
    """The greatest power of a number that is at most a size."""
    power = 0
    while base ** (power + 1) <= size:
        power += 1
    return power


@settings(max_examples=effort(40))
@given(INSTANCES)
def test_tables_hold_the_exact_values_of_what_one_group_decides(instance: Instance) -> None:
    """Each tabulated expression depends on its group alone and has its exact value in every row."""
    problem = instance.problem()
    for table in Tables(problem.space.groups, roots(problem)).tables:
        for node, values in list(table.values.items())[:5]:
            assert node.support <= set(table.group.variables)
            assert len(values) == len(table)
            for row in range(0, len(table), max(1, len(table) // 5)):
                tiles = {v: int(table.group.rows[row, i]) for i, v in enumerate(table.group.variables)}
                assert values[row] == evaluate(node, tiles)


@settings(max_examples=effort(40))
@given(INSTANCES)
def test_local_nodes_are_the_largest(instance: Instance) -> None:
    """No expression that is read passes by the tables: below the shared part everything is tabulated."""
    problem = instance.problem()
    local = local_nodes(roots(problem))
    tabulated = {node for nodes in local.values() for node in nodes}
    stack, seen = roots(problem), set()
    while stack:
        node = stack.pop()
        if node in seen or node in tabulated:
            continue
        seen.add(node)
        assert node.group is None
        stack.extend(node.children())
    for group, nodes in local.items():
        assert {node.group for node in nodes} == {group}


@settings(max_examples=effort(20))
@given(INSTANCES)
def test_look_ups_give_the_values_of_the_rows_that_are_asked_for(instance: Instance) -> None:
    """Known values of several candidates are those of their rows, and so are the tile sizes."""
    problem = instance.problem()
    tables = Tables(problem.space.groups, roots(problem))
    if 0 in tables.sizes or not tables.sizes:
        return
    rows = [np.array([0, size - 1]) for size in tables.sizes]
    known = tables.known(rows)
    last = tables.assignment([size - 1 for size in tables.sizes])
    for table in tables.tables:
        for node, values in table.values.items():
            assert known[node].tolist() == [values[0], values[-1]]
            assert values[-1] == evaluate(node, last)
