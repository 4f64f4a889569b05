"""Arrangements of storage that are stated and searched one after the other."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.arrangements import arrangement_trees
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

EDP, ENERGY = parse_objective("edp"), parse_objective("energy")


@pytest.mark.parametrize(("solver", "factors"), [("branch", "imperfect"), ("exhaustive", "perfect")])
def test_a_limit_while_arrangements_are_stated(
    solver: str, factors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at the second of them: the even mapping stands, with a bound of all that was never stated."""
    engine = load_engine("tpu-v4i")
    problem = layer_problem(gemm(m=2, n=2, k=2), engine, EDP, factors=factors, storage="uneven")
    limits, real = Limits(), LayerProblem.arranged_space
    stated: list[object] = []

    def counted(self: LayerProblem, *arguments: object) -> object:
        stated.append(arguments)
        if len(stated) == 2:
            limits.stop.set()
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LayerProblem, "arranged_space", counted)
    monkeypatch.setattr(arrangement_trees, "has_parts", lambda _problem: False)  # leave nothing to state
    cut = solve(problem, solver, limits)
    assert len(stated) == 2
    assert cut.status is Status.INTERRUPTED
    assert cut.key is not None
    assert cut.bound is not None
    assert 0 < cut.bound < cut.key
    assert cut.answer is not None
    assert problem.outside(cut.answer) is None


@pytest.mark.parametrize("solver", ["exhaustive", "cpsat"])
def test_levels_behind_an_array_that_store_nothing_have_no_loops(solver: str) -> None:
    """Where the weights bypass the level at the first point, its loops are those of the level outside."""
    array = Fanout((ArrayAxis("x", 2, None),), Fraction(0))
    near, weights = frozenset({Role.INPUT, Role.OUTPUT}), frozenset({Role.WEIGHT})
    levels = (
        MemoryLevel("L0", None, Fraction(20), Fraction(20), fanout=array),
        MemoryLevel("L1", 4, Fraction(5), Fraction(5), keeps=near),
        MemoryLevel("L2", 2, Fraction(30), Fraction(30), keeps=weights, may_bypass=weights),
    )
    engine = Engine("near", "hierarchy", 8, Fraction(1), Fraction(500), levels)
    operator = gemm(m=4, n=1, k=2)
    problem = layer_problem(operator, engine, ENERGY, factors="imperfect", storage="uneven")
    result = solve(problem, solver)
    assert (result.status, result.message) == (Status.OPTIMAL, "")
    assert result.key == solve(problem, "branch").key == 468
