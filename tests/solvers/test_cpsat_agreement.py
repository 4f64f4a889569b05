"""CP-SAT's answers agree with plain enumeration on random small instances."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import SPACES, Instance, instances

from tilewright.formulation.result import Status
from tilewright.solvers import cpsat_rows
from tilewright.solvers.mapping.cpsat import decisions
from tilewright.solvers.mapping.cpsat import statement as statement_module
from tilewright.solvers.mapping.exhaustive import minima
from tilewright.solvers.mapping.presolve import expansion as expansion_module
from tilewright.solvers.mapping.presolve.dive import Dive
from tilewright.solvers.mapping.solve import solve


def agrees(instance: Instance) -> None:
    """Solve and compare value, status and bound with enumeration."""
    problem = instance.problem()
    want = min((candidate.key for candidate in minima(problem)), default=None)
    result = solve(problem, "cpsat")
    if want is None:
        assert result.status is Status.INFEASIBLE
        assert result.answer is None
    else:
        assert result.status is Status.OPTIMAL
        assert result.key == result.bound == want


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(7))
@given(data=st.data())
def test_solver_agrees_with_enumeration(model: str, factors: str, data: st.DataObject) -> None:
    """Same optimum and same verdict of infeasibility, over all objectives and with constraints."""
    agrees(data.draw(instances(model, factors=factors, largest=20_000, constrained=True)))


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(6))
@given(data=st.data())
def test_solver_agrees_without_a_dive(model: str, factors: str, data: st.DataObject) -> None:
    """CP-SAT finds the optimum by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        agrees(data.draw(instances(model, factors=factors, largest=4000, constrained=True)))


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(6))
@given(data=st.data())
def test_scaled_objectives_stay_exact(model: str, factors: str, data: st.DataObject) -> None:
    """With far fewer bits than the key needs, the proof is still exact."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement_module, "PRODUCT", 1 << 34)
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        objectives = ("edp", "ed2p", "E^2*D^3")
        agrees(data.draw(instances(model, factors=factors, largest=4000, objectives=objectives)))


@pytest.mark.parametrize(("model", "factors"), SPACES)
@settings(max_examples=effort(4))
@given(data=st.data())
def test_rows_stated_by_digits_agree(model: str, factors: str, data: st.DataObject) -> None:
    """Where rows of 64 count as wide and digits have five bits, optimum and infeasibility are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpsat_rows, "WIDE", 1 << 6)
        patch.setattr(cpsat_rows, "_DIGIT", 5)
        patch.setattr(decisions, "WIDE", 1 << 6)
        patch.setattr(Dive, "run", lambda *_args, **_kwargs: None)
        agrees(data.draw(instances(model, factors=factors, largest=300, constrained=True)))


@settings(max_examples=effort(6))
@given(instances("dmazerunner", largest=4000))
def test_unexpanded_products_agree(instance: Instance) -> None:
    """Where expressions are too many to push products into them, the proof is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansion_module, "LARGEST", 0)
        agrees(instance)
