"""Running CP-SAT under the limits of a search, bounds and solutions told on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.herald.problem import Option
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.company import Company
from tilewright.solvers.scheduling.herald.statement import ScheduleStatement

_EXACT, _COARSE = 2**53, 2**-50
_JOIN = 0.05


class _Calls:
    """Callbacks of one run.  Exceptions must not cross into CP-SAT: the first one is kept, and ends it."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None

    def guarded(self, call: Callable[[Any], object]) -> Callable[[Any], None]:
        def caught(argument: Any) -> None:
            if self.failure is None:
                try:
                    call(argument)
                except BaseException as failure:
                    self.failure = failure

        return caught


class _Told(cp_model.CpSolverSolutionCallback):
    """Passes solutions on."""

    def __init__(self, use: Callable[[cp_model.CpSolverSolutionCallback], None]) -> None:
        super().__init__()
        self._use = use

    def on_solution_callback(self) -> None:
        self._use(self)


def run_model(
    statement: ScheduleStatement,
    search: ScheduleSearch,
    workers: int,
    seconds: float | None = None,
    on_bound: Callable[[int], None] | None = None,
    on_solution: Callable[[cp_model.CpSolverSolutionCallback], None] | None = None,
    enough: Callable[[], bool] | None = None,
    brief: bool = False,
) -> tuple[cp_model.CpSolverStatus, cp_model.CpSolver]:
    """Solve a model until a limit strikes, the search is done or it is enough; returns status and solver."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = search.limits.seed
    solver.parameters.catch_sigint_signal = False
    solver.parameters.relative_gap_limit = 0.0
    if brief:  # little is gained by these where the solution takes a second
        solver.parameters.symmetry_level = 0
        solver.parameters.linearization_level = 0
        solver.parameters.cp_model_probing_level = 0
    left = search.limits.remaining
    if left is not None or seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.01, min(x for x in (left, seconds) if x is not None))
    calls = _Calls()
    if on_bound is not None:
        solver.best_bound_callback = calls.guarded(lambda bound: on_bound(integer(bound)))
    told = None if on_solution is None else _Told(calls.guarded(on_solution))

    def over() -> bool:
        return search.done or calls.failure is not None or (enough is not None and enough())

    status = solve_until(solver, statement.model, over, told)
    if calls.failure is not None:
        raise calls.failure
    if on_bound is not None and status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        on_bound(integer(solver.best_objective_bound))
    return status, solver


def solve_until(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    over: Callable[[], bool],
    told: cp_model.CpSolverSolutionCallback | None = None,
) -> cp_model.CpSolverStatus:
    """Solve in a thread of its own, and stop it once it is over; what the solver raises is raised here."""
    company = Company(lambda: solver.solve(model, told), "cp-sat")
    company.start()
    while company.is_alive:
        company.join(_JOIN)
        if over():
            solver.stop_search()
    company.raise_failure()
    assert company.answer is not None
    return company.answer


def read(
    statement: ScheduleStatement, callback: cp_model.CpSolverSolutionCallback
) -> tuple[dict[int, int], dict[int, Option]]:
    """Starts and options of a solution that has just been found."""
    starts = {task: callback.value(start) for task, start in enumerate(statement.starts)}
    chosen = {
        task: statement.options[task][[callback.boolean_value(x) for x in literals].index(True)]
        for task, literals in enumerate(statement.choices)
    }
    return starts, chosen


def integer(bound: float) -> int:
    """The bound on an integer objective that CP-SAT gives as a float; lowered where floats are coarser."""
    return round(bound) if abs(bound) < _EXACT else int(bound * (1 - _COARSE))
