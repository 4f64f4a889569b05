"""One run of CP-SAT on a stated mapping problem: what its end says of the objective."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from enum import Enum

from ortools.sat.python import cp_model

from tilewright.formulation.expression import Variable
from tilewright.formulation.limits import Limits
from tilewright.solvers.cpsat_run import CpSatRun, Values
from tilewright.solvers.mapping.cpsat.statement import Stated


class Ending(Enum):
    """How a run ended."""

    CLOSED = "closed"  #: the model has no further solution, or its best one is known
    STOPPED = "stopped"  #: asked to stop, for a smaller model or because of a limit
    FAILED = "failed"  #: CP-SAT gave up


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one run: how it ended, the bound that it proved, and its effort.

    Parameters
    ----------
    bound : no solution of the model has a smaller objective; ``None`` where there is none at all
    effort : deterministic time that it took
    branches : decisions that it took
    message : of a failure, or why what CP-SAT says is no proof
    """

    ending: Ending
    bound: int | None
    effort: float
    message: str = ""
    branches: int = 0


def run_stated(
    stated: Stated,
    limits: Limits,
    on_assignment: Callable[[MappingABC[Variable, int]], bool],
    on_bound: Callable[[int], None],
    done: Callable[[], bool],
    effort: float | None = None,
) -> Report:
    """Run until the model is closed, a limit strikes or ``on_assignment`` asks to stop.

    Parameters
    ----------
    on_assignment : called with every improving assignment; returns whether to stop for a smaller model
    on_bound : called with every better lower bound of the objective
    done : whether the search around this run is over
    effort : deterministic time that the run may take, ``None`` for any
    """

    def on_solution(values: Values) -> bool:
        return on_assignment(stated.assignment(values.boolean_value))

    model = stated.decisions.model
    run = CpSatRun(model, limits, done, on_solution, on_bound, effort=effort)
    status = run.solve()
    if status == cp_model.MODEL_INVALID:
        return Report(
            Ending.FAILED, None, run.effort, f"CP-SAT rejects the model: {model.validate().strip()}"
        )
    if status == cp_model.INFEASIBLE:
        return Report(Ending.CLOSED, None, run.effort, branches=run.branches)
    ending = Ending.CLOSED if status == cp_model.OPTIMAL else Ending.STOPPED
    return Report(ending, run.bound, run.effort, run.doubt, run.branches)
