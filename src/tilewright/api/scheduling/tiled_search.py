"""The search for the best plan of a network on a tiled machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments
from tilewright.api.scheduling.settings import search_settings
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.foundation.errors import InputError
from tilewright.report.records.files import read_data
from tilewright.report.records.scheduling.tiled.document import plan_document
from tilewright.report.records.scheduling.tiled.warm import warm_plan
from tilewright.solvers.observer import Unobserved
from tilewright.solvers.scheduling.tiled.running import claimed_space, plan_run

DEFAULT = "atomic"
"""The method that searches where none is named."""


def search_plan(problem: TiledProblem, objective: str, request: SearchRequest) -> TiledPlan:
    """The best plan that a method finds; deterministic searches are for layers only.

    Raises
    ------
    InputError : for whatever of the request does not fit plans
    """
    if request.deterministic:
        raise InputError("deterministic", None, "expected False: it is for layers")
    name, reported = request.method or DEFAULT, request.observer or Unobserved()
    budget, warm_starts = request.budget, request.warm_starts
    given = [*warm_starts] if isinstance(warm_starts, list | tuple) else [warm_starts]
    if len(given) > 1:
        raise InputError("warm_starts", None, f"expected one plan, got {len(given)}")
    with named_arguments(), interruptible() as stop:
        warm = [warm_plan(*_plan_data(start), problem) for start in given]
        run = plan_run(
            lambda: problem,
            name,
            budget.limits(stop),
            reported.point,
            reported.phase,
            (lambda stated: warm[0]) if warm else None,
        )
        result = run.run()
    settings = search_settings(name, budget)
    space = claimed_space(run)
    return TiledPlan(plan_document(problem, objective, result, settings, space=space))


def _plan_data(given: Any) -> tuple[Any, str]:
    """The data of a plan that was given as one, as a path, or as data, and how errors call it."""
    if isinstance(given, TiledPlan):
        return given.to_dict(), "warm_starts"
    if isinstance(given, str | os.PathLike):
        return read_data(Path(given)), str(given)
    return given, "warm_starts"
