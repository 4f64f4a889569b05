"""The state of one running search for a schedule: incumbent, bound, trace, limits.

Offers are re-evaluated before they count, as for mappings (`tilewright.formulation.search`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.result import Status, TracePoint, relative_gap
from tilewright.formulation.scheduling.evaluator import ScheduleEvaluation, evaluate_schedule
from tilewright.formulation.scheduling.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.schedule import Schedule
from tilewright.formulation.search import Limits, UnsoundBoundError


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


class ScheduleSearch:
    """Best schedule and best bound so far; safe to share between threads."""

    def __init__(
        self,
        problem: SchedulingProblem,
        objective: ScheduleObjective,
        limits: Limits,
        listener: Callable[[TracePoint], None] | None = None,
    ) -> None:
        self.problem = problem
        self.objective = objective
        self.limits = limits
        self.schedule: Schedule | None = None
        self.evaluation: ScheduleEvaluation | None = None
        self.value: Fraction | None = None
        self.bound: Fraction | None = None
        self.abandon_at: Fraction | None = None  # a bound from which on the problem is of no interest
        self.trace: list[TracePoint] = []
        self._listener = listener
        self._lock = threading.RLock()

    def offer(self, schedule: Schedule, source: str, heuristic: bool = False) -> Fraction:
        """Re-evaluate a schedule; keep it if better.  Returns its value.

        Raises ``IllegalScheduleError`` for a schedule that the evaluator rejects: methods promise legal ones.
        """
        evaluation = evaluate_schedule(self.problem, schedule)
        if evaluation.violations:
            raise IllegalScheduleError(f"{source}: {evaluation.violations[0]}")
        value = self.objective.of(evaluation.makespan, evaluation.energy)
        with self._lock:
            if self.value is None or value < self.value:
                self.schedule, self.evaluation, self.value = schedule, evaluation, value
                self._record(source, True, heuristic)
        return value

    def raise_bound(self, bound: Fraction | int, source: str) -> None:
        """Tell that no schedule has a value below ``bound``."""
        with self._lock:
            if self.bound is None or bound > self.bound:
                self.bound = Fraction(bound)
                self._record(source, False, False)

    @property
    def gap(self) -> float | None:
        return relative_gap(self.value, self.bound)

    @property
    def done(self) -> bool:
        """Whether the gap that was asked for is reached or a limit has struck."""
        gap = self.gap
        if self.abandon_at is not None and self.bound is not None and self.bound >= self.abandon_at:
            return True
        return self.limits.expired or (gap is not None and gap <= self.limits.gap)

    def result(
        self, method: str, version: str, *, infeasible: bool = False, message: str = "", error: bool = False
    ) -> ScheduleResult:
        """The outcome.

        Raises ``UnsoundBoundError`` where a bound exceeds the value that the evaluator confirmed.
        """
        with self._lock:
            if self.value is not None and self.bound is not None and self.bound > self.value:
                raise UnsoundBoundError(
                    f"{method} claims the bound {self.bound}, but a schedule of value {self.value} exists"
                )
            return ScheduleResult(
                status=self._status(infeasible, error),
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

    def _status(self, infeasible: bool, error: bool) -> Status:
        if self.value is not None and self.bound == self.value:
            return Status.OPTIMAL
        if error:
            return Status.ERROR
        if infeasible:
            return Status.INFEASIBLE
        if self.limits.stop.is_set():
            return Status.INTERRUPTED
        return Status.UNKNOWN if self.value is None else Status.FEASIBLE

    def _record(self, source: str, improved: bool, heuristic: bool) -> None:
        point = TracePoint(self.limits.elapsed, self.value, self.bound, source, improved, heuristic)
        self.trace.append(point)
        if self._listener is not None:
            self._listener(point)
