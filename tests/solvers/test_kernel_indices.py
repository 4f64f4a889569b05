"""Kernels of branch and bound index no array beyond its end, and say as Python what they say as code."""

from __future__ import annotations

from fractions import Fraction

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import Instance, instances
from interpreted import interpreted

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.answers.answer_sets import best_mappings
from tilewright.solvers.mapping.solve import solve

INSTANCES = st.sampled_from(["hierarchy", "dmazerunner"]).flatmap(
    lambda model: instances(model, most=6, largest=200)
)


def compare(problem: LayerProblem) -> None:
    """The proof, and the keys of the best mappings, with and without machine code."""

    def keys() -> list[Fraction]:
        return [problem.key_of(solution.evaluation) for solution in best_mappings(problem, 20).solutions]

    with interpreted():
        result, listed = solve(problem, "branch", Limits(threads=1)), keys()
    again = solve(problem, "branch", Limits(threads=1))
    assert (result.status, result.key, result.bound) == (again.status, again.key, again.bound)
    assert result.effort.nodes == again.effort.nodes
    assert listed == keys()


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
