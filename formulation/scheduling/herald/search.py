"""The state of one running search for a schedule: incumbent, bound, trace, limits.

Offers are re-evaluated before they count, as for mappings (`tilewright.formulation.search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.result import Status, TracePoint, relative_gap
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation, evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.search import Incumbent, Limits


class IllegalScheduleError(RuntimeError):
    """A method produced a schedule that the evaluator rejects."""


@dataclass(frozen=True)
class ScheduleResult:
    """The outcome of one search.

    Parameters
    ----------
    value : of the best schedule, re-computed by the evaluator: cycles, pJ, or pJ times cycles
    bound : no schedule has a smaller value; ``None`` where the method proves none
    """

    status: Status
    schedule: Schedule | None
    evaluation: ScheduleEvaluation | None
    objective: ScheduleObjective
    value: Fraction | None
    bound: Fraction | None
    trace: tuple[TracePoint, ...]
    method: str
    version: str
    seed: int
    wall_seconds: float
    input_hash: str
    message: str = ""

    @property
    def gap(self) -> float | None:
        """``(value - bound) / value``; ``None`` without both."""
        return relative_gap(self.value, self.bound)


class ScheduleSearch(Incumbent):
    """Best schedule and best bound so far."""

    def __init__(
        self,
        problem: SchedulingProblem,
        objective: ScheduleObjective,
        limits: Limits,
        listener: Callable[[TracePoint], None] | None = None,
    ) -> None:
        super().__init__(limits, listener)
        self.problem = problem
        self.objective = objective
        self.schedule: Schedule | None = None
        self.evaluation: ScheduleEvaluation | None = None
        self.abandon_at: Fraction | None = None  # a bound from which on the problem is of no interest

    def offer(self, schedule: Schedule, source: str, heuristic: bool = False) -> Fraction:
        """Re-evaluate a schedule; keep it if better.  Returns its value.

        Which results stay in the shared memory is filled in where the method left it open.

        Raises ``IllegalScheduleError`` for a schedule that the evaluator rejects: methods promise legal ones.
        """
        schedule = with_results_kept(self.problem, schedule)
        evaluation = evaluate_schedule(self.problem, schedule)
        if evaluation.violations:
            raise IllegalScheduleError(f"{source}: {evaluation.violations[0]}")
        value = self.objective.of(evaluation.makespan, evaluation.energy)
        with self._lock:
            if self._improves(value):
                self.schedule, self.evaluation, self.value = schedule, evaluation, value
                self._record(source, improved=True, heuristic=heuristic)
        return value

    @property
    def done(self) -> bool:
        """As for any search; also where the bound has reached ``abandon_at``."""
        uninteresting = (
            self.abandon_at is not None and self.bound is not None and self.bound >= self.abandon_at
        )
        return uninteresting or super().done

    def result(
        self, method: str, version: str, *, infeasible: bool = False, message: str = "", error: bool = False
    ) -> ScheduleResult:
        """The outcome.

        Raises ``UnsoundBoundError`` where a bound exceeds the value that the evaluator confirmed.
        """
        with self._lock:
            self._check_bound(method)
            return ScheduleResult(
                status=self._status(infeasible=infeasible, error=error),
                schedule=self.schedule,
                evaluation=self.evaluation,
                objective=self.objective,
                value=self.value,
                bound=self.bound,
                trace=tuple(self.trace),
                method=method,
                version=version,
                seed=self.limits.seed,
                wall_seconds=self.limits.elapsed,
                input_hash=self.problem.content_hash,
                message=message,
            )
