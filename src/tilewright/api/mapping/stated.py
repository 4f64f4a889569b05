"""Layer problems that are stated already: what compares many runs asks for one search at a time."""

from __future__ import annotations

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.solvers.mapping.methods import prepare
from tilewright.solvers.mapping.solve import solve


def prepare_mapping(method: str) -> None:
    """Compile and load what a method needs, before a clock starts."""
    prepare(method)


def searched_mapping(problem: LayerProblem, method: str, limits: Limits) -> LayerResult:
    """What a method finds for a problem within limits; raises ``InputError`` for an unknown method."""
    return solve(problem, method, limits)
