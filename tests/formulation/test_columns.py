"""Values of expressions by class of rows: what tables take from each other, and in which sequence."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances

from tilewright.formulation.expression import Variable, ceil_div
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.tiles import columns
from tilewright.formulation.mapping.tiles.tables import GroupTable, local_nodes
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.operators import gemm


@settings(max_examples=effort(20))
@given(st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(instances), st.integers(0, 2**32))
def test_classes_have_the_values_of_their_rows(instance: Instance, seed: int) -> None:
    """Expanded, taken at some rows, in another sequence, read later: the values of plain columns."""
    problem, random = instance.problem(), np.random.default_rng(seed)
    roots = [problem.statement.energy, problem.statement.cycles, *(limit.expr for limit in problem.limits)]
    nodes = local_nodes(roots)
    for group in problem.space.groups:
        own = nodes.get(group.name, [])
        plain = GroupTable(group, own)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(columns, "LARGE", 0)
            patched.setattr(columns, "_FEWER", random.choice([1, 2]))
            patched.setattr(columns, "_DENSE", random.choice([0, 8]))
            classed = GroupTable(group, own[: len(own) // 2])
            assert classed.values.is_large == (len(group) > 0)
            order = random.permutation(len(group))[: random.integers(0, len(group) + 1)]
            moved = classed.reordered(order).reading(roots)
            classed.values.update(classed.missing(roots))
        assert set(classed.values) == set(moved.values) == set(own)
        for node in own:
            assert classed.values[node].tolist() == plain.values[node].tolist()
            assert classed.values.take(node, order).tolist() == plain.values[node][order].tolist()
            assert moved.values[node].tolist() == plain.values[node][order].tolist()


def test_rows_that_agree_are_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large group's expression over one of several tiles has as many values as that tile has sizes."""

    monkeypatch.setattr(columns, "LARGE", 100)
    problem = layer_problem(gemm(m=64, n=8, k=8), load_engine("eyeriss-168"), parse_objective("energy"))
    [group] = [group for group in problem.space.groups if group.name == "M"]
    tile = group.variables[1]
    table = GroupTable(group, [tile])
    classes, values = table.values.by_class(tile)
    assert classes is not None
    assert len(values) == len(np.unique(group.rows[:, 1])) < len(group) / 4


def test_a_limit_strikes_between_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances with every column that is numbered ends the search for further classes."""

    monkeypatch.setattr(columns, "LARGE", 0)
    problem = layer_problem(gemm(m=64, n=8, k=8), load_engine("eyeriss-168"), parse_objective("energy"))
    [group] = [group for group in problem.space.groups if group.name == "M"]
    nodes = local_nodes([problem.statement.energy])["M"]
    classed: list[int] = []
    numbered = columns._numbered

    def number(codes: Int64s | Int32s, most: int) -> tuple[Int32s, int]:
        classed.append(most)
        return numbered(codes, most)

    monkeypatch.setattr(columns, "_numbered", number)
    limits = Limits(seconds=3, started=0, clock=lambda: float(len(classed)))
    with pytest.raises(LimitReachedError):
        columns.Columns(group).compute(nodes, limits)
    assert 3 <= len(classed) <= 4


def test_a_column_is_numbered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions over two pairs of three tiles number three columns and two combinations."""
    monkeypatch.setattr(columns, "LARGE", 0)
    problem = layer_problem(gemm(m=64, n=8, k=8), load_engine("eyeriss-168"), parse_objective("energy"))
    [group] = [group for group in problem.space.groups if group.name == "M"]
    numbered, calls = columns._numbered, 0

    def number(codes: Int64s | Int32s, most: int) -> tuple[Int32s, int]:
        nonlocal calls
        calls += 1
        return numbered(codes, most)

    monkeypatch.setattr(columns, "_numbered", number)
    first, second, third = group.variables[:3]
    values = columns.Columns(group)
    values.compute([first * second])
    others = values.among([])
    others.compute([first * third, second + first])
    assert calls == 5
    expected = group.rows[:, 0] * group.rows[:, 2]
    assert others[first * third].tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 1


def test_values_taken_twice_keep_their_classes_in_another_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken first has classes of its own beside those of the same tiles that came later."""
    monkeypatch.setattr(columns, "LARGE", 0)
    monkeypatch.setattr(columns, "_FEWER", 1)
    problem = layer_problem(gemm(m=24, n=1, k=1), load_engine("tpu-edge"), parse_objective("energy"))
    group = max(problem.space.groups, key=len)
    tile: Variable = group.variables[0]
    whole = GroupTable(group, ())
    wanted = np.arange(0, len(group), 2)
    part = GroupTable(group.having(group.rows[wanted]), ())
    expressions = [ceil_div(100, tile), tile * 3]
    for expression in expressions:
        whole.values.compute([expression])
        part.take(whole, wanted)
    backwards = np.arange(len(wanted))[::-1]
    turned = part.reordered(backwards)
    sizes = group.rows[wanted][backwards, 0]
    assert turned.values[expressions[0]].tolist() == (-(-100 // sizes)).tolist()
    assert turned.values[expressions[1]].tolist() == (3 * sizes).tolist()
    assert len(set(sizes.tolist())) > 1
