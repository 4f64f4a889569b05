"""Kernels of branch and bound index no array beyond its end, and say as Python what they say as code."""

from __future__ import annotations

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from interpreted import interpreted

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.answer_sets import best_mappings
from tilewright.solvers.mapping.solve import solve

INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=6, largest=200)
)


def compare(problem: LayerProblem) -> None:
    """The proof, and the list of the best mappings, with and without machine code."""
    with interpreted():
        result = solve(problem, "branch", Limits(threads=1))
        listed = [solution.mapping for solution in best_mappings(problem, 20).solutions]
    again = solve(problem, "branch", Limits(threads=1))
    assert (result.status, result.key, result.bound) == (again.status, again.key, again.bound)
    assert result.effort.nodes == again.effort.nodes
    assert listed == [solution.mapping for solution in best_mappings(problem, 20).solutions]


@settings(max_examples=effort(12))
@given(INSTANCES)
def test_kernels_stay_within_their_arrays(instance: Instance) -> None:
    """On problems of few mappings, those of one among them."""
    compare(instance.problem())


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(INSTANCES)
def test_kernels_stay_within_their_arrays_on_many_problems(instance: Instance) -> None:
    """The same, for hundreds of problems."""
    compare(instance.problem())
