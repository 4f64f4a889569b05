"""Running CP-SAT on statements of scheduling problems."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.cpsat_run import CpSatRun, Values
from tilewright.solvers.scheduling.herald.statement import ScheduleStatement


def run_model(
    statement: ScheduleStatement,
    search: ScheduleSearch,
    workers: int,
    seconds: float | None = None,
    on_bound: Callable[[int], None] | None = None,
    on_solution: Callable[[Values], None] | None = None,
    enough: Callable[[], bool] = lambda: False,
    brief: bool = False,
) -> CpSatRun:
    """Solve a model until a limit strikes, the search is done or it is enough; returns the ended run.

    Parameters
    ----------
    statement : the model
    search : whose limits count, and whose proofs a doubt takes back
    workers : threads of CP-SAT
    seconds : at most, within the search's limits
    on_bound, on_solution : called with better ones, see `CpSatRun`
    enough : whether to stop before
    brief : whether presolve is short
    """
    run = CpSatRun(
        statement.model,
        search.limits,
        lambda: search.done or enough(),
        on_solution,
        on_bound,
        workers=workers,
        seconds=seconds,
        brief=brief,
    )
    run.solve()
    if on_bound is not None:
        search.doubt(run.doubt)
        if run.has_solution:
            on_bound(run.bound)
    return run
