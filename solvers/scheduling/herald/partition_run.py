"""A co-design in a thread of its own, which signals and limits end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Status, TracePoint
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.search import UnsoundBoundError
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.solvers.background import failure_text
from tilewright.solvers.running import LEFT_BEHIND
from tilewright.solvers.scheduling.herald.partition import PartitionOutcome, PartitionSearch
from tilewright.solvers.scheduling.herald.schedule import GRACE
from tilewright.solvers.watched import Watched
from tilewright.workloads.errors import InputError
from tilewright.workloads.scheduling.workload import Workload


class PartitionRun:
    """A running search for a partition; the parameters are those of `PartitionSearch`."""

    def __init__(
        self,
        workload: Workload,
        resources: AcceleratorClass,
        flows: Sequence[str],
        objective: ScheduleObjective,
        limits: Limits,
        strategy: str = "exhaustive",
        metric: str | None = None,
        told: Callable[[TracePoint], None] = lambda point: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._limits = limits
        self._search = PartitionSearch(
            workload,
            resources,
            flows,
            objective,
            limits,
            strategy,
            metric,
            told=lambda point: None if self._watched.abandoned else told(point),
            note=lambda text: None if self._watched.abandoned else note(text),
        )
        self._watched = Watched(self._search.run, limits, grace=GRACE)

    def so_far(self) -> PartitionOutcome:
        """What is known now."""
        return self._search.outcome()

    def run(self) -> PartitionOutcome:
        """Search, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        InputError : where the problem cannot be stated
        UnsoundBoundError : where a bound was claimed that a schedule contradicts
        """
        self._watched.run()
        failure = self._watched.failure
        if isinstance(failure, InputError | UnsoundBoundError):
            raise failure
        left = self._watched.abandoned and not self._limits.stop.is_set()
        outcome = self._search.outcome(LEFT_BEHIND if left else "")
        if failure is not None and not isinstance(failure, LimitReachedError):
            return replace(outcome, status=Status.ERROR, message=failure_text(failure))
        return outcome
