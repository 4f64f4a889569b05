"""One search for a schedule in a thread of its own, whose state can be read at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleResult, ScheduleSearch
from tilewright.formulation.search import Limits, UnsoundBoundError
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.scheduling.herald.build import schedule_problem
from tilewright.solvers.scheduling.herald.costs import OutOfTimeError
from tilewright.solvers.scheduling.herald.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.registry import Scheduler
from tilewright.solvers.watched import Watched
from tilewright.workloads.errors import InputError, one_line
from tilewright.workloads.scheduling.workload import Workload

GRACE = 0.8
"""Seconds that a search has to come back; all that it has found is in its state, so that none is lost."""
LEFT_BEHIND = "the search did not stop in time and was left behind"


@dataclass
class ScheduleRun:
    """A search that is running or has ended.

    Parameters
    ----------
    metric : by which mappings of layers are chosen
    told, phase : told of every better schedule and bound, and of what begins
    """

    workload: Workload
    system: System
    objective: ScheduleObjective
    metric: str
    scheduler: Scheduler
    limits: Limits
    told: Callable[[TracePoint], None]
    phase: Callable[[str], None]
    problem: SchedulingProblem | None = None
    _search: ScheduleSearch | None = None
    _watched: Watched[str] = field(init=False)
    _costs: CostsProgress = field(init=False)

    def __post_init__(self) -> None:
        self._costs = CostsProgress(self._say)
        self._watched = Watched(self._work, self.limits, grace=GRACE)

    def run(self) -> ScheduleResult:
        """Search, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        InputError : where the problem cannot be stated
        UnsoundBoundError : where a bound exceeds the value of a schedule
        Interruption : at a second signal
        """
        self._watched.run()
        failure = self._watched.failure
        if isinstance(failure, InputError | UnsoundBoundError):
            raise failure
        if failure is not None and not isinstance(failure, OutOfTimeError):
            return self.so_far(f"{type(failure).__name__}: {one_line(failure)}", error=True)
        reason = self._watched.answer
        if reason is not None:
            return self.so_far(reason, infeasible=bool(reason))
        left_behind = self._watched.abandoned and not self.limits.stop.is_set()
        return self.so_far(LEFT_BEHIND if left_behind else "")

    def so_far(self, message: str = "", *, infeasible: bool = False, error: bool = False) -> ScheduleResult:
        """The best schedule and bound that are known."""
        name, version = self.scheduler.name, self.scheduler.version
        if self._search is not None:
            return self._search.result(name, version, infeasible=infeasible, message=message, error=error)
        status = Status.INTERRUPTED if self.limits.stop.is_set() else Status.UNKNOWN
        return ScheduleResult(
            status=Status.ERROR if error else status,
            schedule=None,
            evaluation=None,
            objective=self.objective,
            value=None,
            bound=None,
            trace=(),
            method=name,
            version=version,
            seed=self.limits.seed,
            wall_seconds=self.limits.elapsed,
            input_hash="",
            message=message or self._costs.stopped,
        )

    def _work(self) -> str:
        problem = schedule_problem(
            self.workload, self.system, self.metric, self.limits, told=self._costs.told
        )
        self.phase(f"{self.scheduler.name} on {len(problem.tasks)} layers")
        self.problem = problem
        self._search = ScheduleSearch(problem, self.objective, self.limits, self._heard)
        return self.scheduler.solve(self._search)

    def _say(self, text: str) -> None:
        if not self._watched.abandoned:
            self.phase(text)

    def _heard(self, point: TracePoint) -> None:
        if not self._watched.abandoned:
            self.told(point)
