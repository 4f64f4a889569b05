"""Tensor-centric directives: text and back, sizes and counts equal to the evaluator's."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.directives import (
    Directives,
    TensorTile,
    access_counts,
    parse_directives,
    write_directives,
)
from tilewright.formulation.mapping.evaluator import Access, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

TEXT = """\
layer gemm(M=4, N=8, K=6) -> O

PE:
  update(K+=1)
REG:
  tensor W(K=2, N=1)   # a comment
  stack(N+=1, 8, k)
  update(M+=1)
  update(K+=2)
DRAM:
  tensor W(K=6, N=8)
"""


def by_place(rows: list[Access] | tuple[Access, ...]) -> dict[tuple[str, str], Access]:
    return {(row.level, row.tensor): row for row in rows}


@settings(max_examples=effort(120))
@given(st.data())
def test_counts_and_sizes_equal_the_evaluators(data: st.DataObject) -> None:
    """On random operators, machines and mappings: even or uneven, with perfect or imperfect factors."""
    operator, engine = data.draw(operators(most=64)), data.draw(hierarchies(roomy=True))
    uneven, perfect = data.draw(st.booleans()), data.draw(st.booleans())
    mapping = data.draw(mappings(operator, engine, uneven, perfect))
    try:
        evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), mapping)
    except InputError:
        return
    directives = parse_directives(write_directives(Directives.of(operator, mapping)))
    assert by_place(access_counts(directives, engine)) == by_place(evaluation.accesses)


@settings(max_examples=effort(60))
@given(st.data())
def test_text_and_back(data: st.DataObject) -> None:
    """Written, read and turned into loops again, a mapping is what it was."""
    operator, engine = data.draw(operators()), data.draw(hierarchies(roomy=True))
    mapping: Mapping = data.draw(
        mappings(operator, engine, data.draw(st.booleans()), data.draw(st.booleans()))
    )
    directives = Directives.of(operator, mapping)
    assert parse_directives(write_directives(directives)) == directives
    assert directives.mapping() == mapping


@pytest.mark.parametrize("arch", ["eyeriss-168", "nvdla-256", "tpu-edge", "shidiannao-256"])
def test_optimal_mappings_of_presets(arch: str) -> None:
    """Row-stationary, broadcast and systolic machines, with sliding windows and partitions."""
    operator = parse_layer("conv:N=2,K=32,C=16,P=14,Q=14,R=3,S=3,pad=1")[1]
    problem = layer_problem(operator, load_engine(arch), parse_objective("edp"), None, (), "perfect")
    result = solve(problem, "branch")
    assert result.answer is not None
    assert result.evaluation is not None
    directives = Directives.of(operator, result.answer)
    assert by_place(access_counts(directives, problem.engine)) == by_place(result.evaluation.accesses)


def test_reading() -> None:
    """Levels, comments and sharing factors."""
    read = parse_directives(TEXT)
    assert read.bounds == {"M": 4, "N": 8, "K": 6}
    assert read.output == "O"
    tile = read.lines[1]
    assert isinstance(tile, TensorTile)
    assert (tile.level, tile.size, tile.share) == ("REG", 2, 1)
    shared = parse_directives(TEXT.replace("K=2, N=1", "K=2, N=3, shr=4")).lines[1]
    assert isinstance(shared, TensorTile)
    assert shared.size == 2
    assert write_directives(read) == TEXT.replace("   # a comment", "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("layer gemm", "gemm", "line 1: expected layer"),
        ("stack(N+=1, 8, k)", "stack(N+=1)", "line 7: cannot read"),
        ("K=2, N=1", "K=x, N=1", "line 6: cannot read 'K=x'"),
        ("update(K+=1)", "update(K=1)", "line 4: cannot read"),
        (TEXT, "", "no directives"),
    ],
)
def test_malformed_text(old: str, new: str, message: str) -> None:
    """The line at fault is named."""
    with pytest.raises(InputError, match=message):
        parse_directives(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("K=2, N=1", "K=3, N=1", "tensor W in REG: K=3, the updates and stacks outside leave 2"),
        ("8, k", "7, k", "7 copies, expected 8"),
        ("K+=1", "X+=1", "unknown loop"),
        ("K+=1", "K+=7", "expected 1 to 2"),
        ("K=2, N=1", "K=2, N=1, shr=2", "shr=2, expected 1 unless a machine shares it"),
    ],
)
def test_directives_that_do_not_fit_together(old: str, new: str, message: str) -> None:
    """Sizes, copies and loops are checked against each other."""
    with pytest.raises(InputError, match=message):
        parse_directives(TEXT.replace(old, new)).mapping()
