"""One workload scheduled on one system: costs, problem, method, limits and result."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.running import SearchRun
from tilewright.solvers.scheduling.herald.cost_tables.build import schedule_problem
from tilewright.solvers.scheduling.herald.cost_tables.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.workloads.scheduling.workload import Workload

GRACE = 0.8
"""Seconds that a search has to come back; all that it has found is in its state, so that none is lost."""

ScheduleRun = SearchRun[ScheduleGoal, Schedule, ScheduleEvaluation]


def schedule_run(
    workload: Workload,
    system: System,
    objective: ScheduleObjective,
    metric: str,
    method: str,
    limits: Limits,
    reported: Callable[[TracePoint], None] = lambda point: None,
    phase: Callable[[str], None] = lambda text: None,
) -> ScheduleRun:
    """A search for a schedule in a thread of its own, which signals and limits end.

    Parameters
    ----------
    metric : by which mappings of layers are chosen
    reported, phase : called with every better schedule and bound, and of what begins

    Raises
    ------
    InputError : for an unknown method or option
    """
    scheduler = METHODS.make(method)
    costs = CostsProgress(phase)

    def state(notify: Callable[[TracePoint], None]) -> ScheduleSearch:
        problem = schedule_problem(workload, system, metric, limits, note=phase, reported=costs.reported)
        phase(f"{scheduler.name} on {len(problem.tasks)} layers")
        return ScheduleSearch(ScheduleGoal(problem, objective), limits, notify, exact=scheduler.exact)

    return SearchRun(state, scheduler, method, limits, reported, grace=GRACE, unstated=lambda: costs.stopped)
