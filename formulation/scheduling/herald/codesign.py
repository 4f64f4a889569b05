"""Co-design as a problem of the one search core: the best partition of the resources, with its schedule.

The answer is a division of the chip and a schedule on it.  What is known of every single division is kept
beside the incumbent: once each has a bound, the least of these bounds the whole grid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Result
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleResult
from tilewright.formulation.search import Judgement, Listener, Search
from tilewright.hardware.scheduling.herald.system import System
from tilewright.workloads.scheduling.workload import Workload

Parts = tuple[tuple[int, Fraction], ...]
"""A partition: PEs and bytes per cycle of every sub-accelerator."""


class Division(NamedTuple):
    """A point of the grid: who has what, and which variants of machine files stand there.

    Parameters
    ----------
    parts : the partition
    place : of machine files whose fields vary, the point on every axis
    """

    parts: Parts
    place: tuple[int, ...] = ()


_SOURCE = "partitions"


@dataclass(frozen=True, slots=True)
class Design:
    """A division and a schedule on the system that it makes."""

    division: Division
    schedule: Schedule


class CodesignGoal:
    """The best of several partitions, each with its best schedule.

    Parameters
    ----------
    systems : what is searched, in the grid's order
    metric : by which mappings of layers are chosen
    state : the scheduling problem on a division
    """

    def __init__(
        self,
        workload: Workload,
        systems: Mapping[Division, System],
        metric: str,
        objective: ScheduleObjective,
        state: Callable[[Division], SchedulingProblem],
    ) -> None:
        self.systems = systems
        self.objective = objective
        self._workload, self._metric, self._state = workload, metric, state
        self._instances: dict[Division, SchedulingProblem] = {}

    def instance(self, division: Division) -> SchedulingProblem:
        """The scheduling problem on one division, stated when it is first asked for."""
        if division not in self._instances:
            self._instances[division] = self._state(division)
        return self._instances[division]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of networks, systems, metric and objective."""
        networks = [
            [
                part.name,
                part.batches,
                [[layer.name, repr(layer.operator)] for layer in part.network.layers],
                sorted(part.network.graph.edges),
                *part.network.stated_widths,
            ]
            for part in self._workload.parts
        ]
        systems = [system.content_hash for system in self.systems.values()]
        content = [networks, systems, self._metric, self.objective.value]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def judge(self, design: Design) -> Judgement[Design, ScheduleEvaluation]:
        """What the design's schedule costs on its partition.

        Raises
        ------
        KeyError : for a partition that is not searched
        """
        judgement = ScheduleGoal(self.instance(design.division), self.objective).judge(design.schedule)
        whole = Design(design.division, judgement.answer)
        return Judgement(whole, judgement.evaluation, judgement.key, judgement.violations, judgement.outside)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One partition and what is known of it.

    Parameters
    ----------
    result : of the latest search for a schedule on it; it has both a schedule and a bound
    herald : cycles and energy of the better of Herald's schedules
    visits : how often the exact scheduler was asked
    """

    division: Division
    system: System
    problem: SchedulingProblem
    result: ScheduleResult
    herald: tuple[int, Fraction]
    visits: int = 0

    @property
    def schedule(self) -> Schedule:
        """The best schedule known."""
        assert self.result.answer is not None
        return self.result.answer

    @property
    def value(self) -> Fraction:
        """Of the best schedule known."""
        assert self.result.key is not None
        return self.result.key

    @property
    def bound(self) -> Fraction:
        """No schedule on the partition has a smaller value."""
        assert self.result.bound is not None
        return self.result.bound

    @property
    def point(self) -> tuple[int, Fraction]:
        """Cycles and energy of the best schedule known."""
        assert self.result.evaluation is not None
        return self.result.evaluation.makespan, self.result.evaluation.energy


@dataclass(frozen=True)
class CodesignResult(Result[Design, ScheduleEvaluation]):
    """What a search for a design comes to.

    Parameters
    ----------
    candidates : all partitions looked at, in the grid's order
    unfit : partitions on which some layer fits nowhere
    discarded : partitions that were never scheduled exactly, because their bound reached the incumbent
    stated_seconds : after which the costs of all layers were known
    """

    candidates: Sequence[Candidate] = ()
    unfit: int = 0
    discarded: int = 0
    stated_seconds: float = 0.0

    @property
    def best(self) -> Candidate | None:
        """The partition of the best design."""
        return next(
            (
                candidate
                for candidate in self.candidates
                if self.answer and candidate.division == self.answer.division
            ),
            None,
        )

    @property
    def scheduled(self) -> int:
        """Partitions for which the exact scheduler was asked."""
        return sum(candidate.visits > 0 for candidate in self.candidates)


class CodesignSearch(Search[CodesignGoal, Design, ScheduleEvaluation]):
    """A running search for a design, with what is known of every partition."""

    def __init__(self, goal: CodesignGoal, limits: Limits, listener: Listener | None = None) -> None:
        super().__init__(goal, limits, listener)
        self._known: dict[Division, Candidate] = {}
        self._unfit: set[Division] = set()
        self._began = limits.elapsed

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All partitions looked at, in the grid's order."""
        with self._best.lock:
            return tuple(self._known[place] for place in self.problem.systems if place in self._known)

    def knows(self, division: Division) -> bool:
        """Whether something is known of a division."""
        return division in self._known or division in self._unfit

    @property
    def complete(self) -> bool:
        """Whether something is known of every partition, so that there is a bound of all."""
        return len(self._known) + len(self._unfit) == len(self.problem.systems)

    def enough(self, bound: Fraction) -> bool:
        """Whether a partition of this bound cannot improve on the incumbent by more than the gap allows."""
        return self.key is not None and bound >= self.goal(self.key)

    def goal(self, key: Fraction) -> Fraction:
        """What a bound must reach for a key to be good enough."""
        return key * (1 - Fraction(self.limits.gap))

    def learn(self, candidate: Candidate) -> Candidate:
        """Take over what is known of a partition: its schedule, and the grid's bound if that rises.

        Returns what is known now: what a thread left behind reports late may be less than is known already.
        """
        with self._best.lock:
            known = self._known.get(candidate.division)
            if known is not None and (candidate.value > known.value or candidate.bound < known.bound):
                return known
            self._known[candidate.division] = candidate
            if self.key is None or candidate.value < self.key:
                step = next(point for point in reversed(candidate.result.trace) if point.improved)
                self.confirm(Design(candidate.division, candidate.schedule), _SOURCE, step.origin)
            self._raise_least()
            return candidate

    def rule_out(self, division: Division) -> None:
        """Some layer fits nowhere on a division."""
        with self._best.lock:
            self._unfit.add(division)
            self._raise_least()

    def _raise_least(self) -> None:
        """The least of the partitions' bounds holds for all, once each has one."""
        if self.complete and self.key is not None:
            self.raise_bound(min(self.key, *(candidate.bound for candidate in self._known.values())), _SOURCE)

    def result(
        self, method: str, version: str, exhausted: bool = False, message: str = "", error: bool = False
    ) -> CodesignResult:
        """The outcome; raises `UnsoundBoundError` as every search does.

        Parameters
        ----------
        method, version : whose result it is
        exhausted : whether the method has looked at everything
        message : what the method says; by default which partitions are missing
        error : whether the method failed
        """
        with self._best.lock:
            outcome = super().result(method, version, exhausted, message or self._missing, error)
            return codesign_result(
                outcome,
                candidates=self.candidates,
                unfit=len(self._unfit),
                discarded=sum(
                    not candidate.visits and self.enough(candidate.bound) for candidate in self.candidates
                ),
                stated_seconds=self._began,
            )

    @property
    def _missing(self) -> str:
        if self.complete:
            return ""
        known = len(self._known) + len(self._unfit)
        return f"{known} of {len(self.problem.systems)} partitions examined, so there is no bound over all"


def codesign_result(result: Result[Design, ScheduleEvaluation], **known: object) -> CodesignResult:
    """A result with what is known of partitions; nothing where the search never began."""
    if isinstance(result, CodesignResult):
        return result
    return CodesignResult(**{entry.name: getattr(result, entry.name) for entry in fields(result)} | known)
