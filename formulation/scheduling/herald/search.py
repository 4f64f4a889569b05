"""The search core's types for schedules, and the goal of a search for one."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.method import Method
from tilewright.formulation.result import Result
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation, evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.search import Judgement, Search


@dataclass(frozen=True, slots=True)
class ScheduleGoal:
    """The best schedule of an instance for an objective.

    Keys are cycles, pJ, or pJ times cycles.
    """

    instance: SchedulingProblem
    objective: ScheduleObjective

    @property
    def content_hash(self) -> str:
        """Of the instance; the objective stands beside it in documents."""
        return self.instance.content_hash

    def judge(self, schedule: Schedule) -> Judgement[Schedule, ScheduleEvaluation]:
        """What a schedule costs, and which dependency or buffer it violates.

        Which results stay in the shared memory is filled in where the method left it open.
        """
        whole = with_results_kept(self.instance, schedule)
        evaluation = evaluate_schedule(self.instance, whole)
        return Judgement(
            whole,
            evaluation,
            self.objective.of(evaluation.makespan, evaluation.energy),
            evaluation.violations,
        )


ScheduleSearch = Search[ScheduleGoal, Schedule, ScheduleEvaluation]
ScheduleResult = Result[Schedule, ScheduleEvaluation]
ScheduleMethod = Method[ScheduleSearch]
