"""Values of expressions by class of rows: what tables take from each other, and in which sequence."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.formulation.expression import Variable, ceil_div
from tilewright.formulation.mapping import columns
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.tables import GroupTable
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.operators import gemm


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
