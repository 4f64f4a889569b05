"""Co-design: the best partition of the resources together with its schedule.

The problem falls apart into one scheduling problem per partition.  Every partition gets a cheap bound; the
one with the least bound is scheduled for a while, which raises its bound and may lower the incumbent, and
so on.  A partition whose bound reaches the incumbent is discarded.  The least bound of what is open bounds
the whole grid.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Origin, Status, TracePoint, relative_gap
from tilewright.formulation.scheduling.herald.problem import (
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleResult, ScheduleSearch
from tilewright.formulation.stopping import BoundReaches
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, make_system
from tilewright.hardware.scheduling.herald.system import System
from tilewright.heuristics.scheduling.herald.partitions import (
    STRATEGIES,
    Parts,
    binary_sample,
    grid,
    random_sample,
)
from tilewright.heuristics.scheduling.herald.scheduler import HeraldSettings, Ordering, herald, metric_of
from tilewright.solvers.caches import cache_folder
from tilewright.solvers.scheduling.herald.bounds import basic_bounds, first_bounds
from tilewright.solvers.scheduling.herald.build import METRIC_OF, problem_from_table, workload_operators
from tilewright.solvers.scheduling.herald.costs import cost_table
from tilewright.solvers.scheduling.herald.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.cpsat import CpSatScheduler
from tilewright.workloads.errors import InputError, unknown_name
from tilewright.workloads.scheduling.workload import Workload

_SLICE = 4.0  # seconds that a partition is scheduled for at first; doubled at every further visit
_LARGEST = 20_000  # partitions of a grid
_RANDOM = 32  # partitions of a random sample


@dataclass
class Candidate:
    """One partition and what is known of it.

    Parameters
    ----------
    bound : no schedule on it has a smaller value
    value : of the best schedule known
    schedule, herald : Herald's schedule, its cycles and energy
    result : of the exact scheduler, where it was asked
    questioned : whether the costs of its layers were counted again
    """

    parts: Parts
    system: System
    problem: SchedulingProblem
    bound: Fraction
    value: Fraction
    schedule: Schedule
    herald: tuple[int, Fraction]
    result: ScheduleResult | None = None
    visits: int = 0
    questioned: bool = False

    @property
    def point(self) -> tuple[int, Fraction]:
        """Cycles and energy of the best schedule known."""
        if self.result is not None and self.result.evaluation is not None:
            return self.result.evaluation.makespan, self.result.evaluation.energy
        return self.herald

    def answer(self, objective: ScheduleObjective) -> ScheduleResult:
        """The exact scheduler's result; where it was not asked, Herald's schedule with the cheap bound."""
        if self.result is not None:
            return self.result
        search = ScheduleSearch(ScheduleGoal(self.problem, objective), Limits())
        search.confirm(self.schedule, "herald", origin=Origin.HEURISTIC)
        search.raise_bound(self.bound, "assignment LP")
        return search.result("herald", __version__)


@dataclass
class PartitionOutcome:
    """What the search found.

    Parameters
    ----------
    candidates : all partitions looked at, in the grid's order
    bound : no partition of those searched has a schedule of smaller value
    unfit : partitions on which some layer fits nowhere
    discarded : partitions that were never scheduled exactly, because their bound reached the incumbent
    """

    status: Status
    objective: ScheduleObjective
    best: Candidate | None
    value: Fraction | None
    bound: Fraction | None
    candidates: list[Candidate]
    discarded: int
    scheduled: int
    table_seconds: float
    wall_seconds: float
    trace: list[TracePoint] = field(default_factory=list)
    message: str = ""
    unfit: int = 0

    @property
    def gap(self) -> float | None:
        return relative_gap(self.value, self.bound)

    def to_data(self) -> dict[str, Any]:
        """Plain data: the best partition, the proof, and every point with Herald's and the best figures."""
        return {
            "status": str(self.status),
            "objective": str(self.objective),
            "value": None if self.value is None else float(self.value),
            "value_exact": None if self.value is None else str(self.value),
            "bound": None if self.bound is None else float(self.bound),
            "bound_exact": None if self.bound is None else str(self.bound),
            "gap": self.gap,
            "partition": None if self.best is None else parts_data(self.best.parts),
            "partitions": len(self.candidates),
            "unfit": self.unfit,
            "discarded": self.discarded,
            "scheduled": self.scheduled,
            "tables_s": self.table_seconds,
            "wall_s": self.wall_seconds,
            "points": [
                {
                    "partition": parts_data(one.parts),
                    "cycles": one.point[0],
                    "energy_pj": float(one.point[1]),
                    "energy_pj_exact": str(one.point[1]),
                    "herald_cycles": one.herald[0],
                    "herald_energy_pj": float(one.herald[1]),
                    "value": float(one.value),
                    "value_exact": str(one.value),
                    "bound": float(one.bound),
                    "bound_exact": str(one.bound),
                    "scheduled": one.result is not None,
                }
                for one in self.candidates
            ],
        }


def parts_data(parts: Parts) -> list[dict[str, float]]:
    """A partition as plain data."""
    return [{"pes": pes, "bytes_per_cycle": float(rate)} for pes, rate in parts]


def partitions_of(resources: AcceleratorClass, parts: int, strategy: str, seed: int) -> list[Parts]:
    """The partitions of a class that a strategy looks at; raises ``InputError`` for an unknown one."""
    if strategy not in STRATEGIES:
        raise InputError("--search", None, unknown_name(strategy, STRATEGIES))
    steps = resources.pes // resources.pe_step, resources.bandwidth // resources.bandwidth_step
    many = math.prod(math.comb(whole - 1, parts - 1) for whole in steps if whole)
    if many > _LARGEST:
        raise InputError("--pe-step", None, f"a grid of {many} partitions, expected at most {_LARGEST}")
    points = grid(resources.pes, resources.pe_step, resources.bandwidth, resources.bandwidth_step, parts)
    if strategy == "binary":
        return binary_sample(points)
    return random_sample(points, _RANDOM, seed) if strategy == "random" else points


class PartitionSearch:
    """One co-design call.

    Parameters
    ----------
    flows : the dataflow of every sub-accelerator
    strategy : ``exhaustive``, ``binary`` or ``random``: which partitions of the grid are looked at
    metric : by which mappings are chosen; by default the objective's own

    Raises
    ------
    InputError : for an unknown strategy, or a grid without partitions
    """

    def __init__(
        self,
        workload: Workload,
        resources: AcceleratorClass,
        flows: Sequence[str],
        objective: ScheduleObjective,
        limits: Limits,
        strategy: str = "exhaustive",
        metric: str | None = None,
        folder: Path | None = None,
        told: Callable[[TracePoint], None] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        points = partitions_of(resources, len(flows), strategy, limits.seed)
        if not points:
            raise InputError("--dataflows", None, "more dataflows than the grid has steps")
        self._workload, self._objective, self._limits = workload, objective, limits
        self._systems = [
            (parts, make_system(f"{resources.name}-{i + 1}", resources, flows, parts))
            for i, parts in enumerate(points)
        ]
        self._metric = metric or METRIC_OF[objective]
        self._folder, self._told, self._note = folder, told, note
        self._trace: list[TracePoint] = []
        self._candidates: list[Candidate] = []
        self._lock = threading.Lock()
        self._unfit = 0
        self._complete = False  # whether every partition has a bound
        self._table_seconds = 0.0
        self._costs = CostsProgress(self._say)

    def run(self) -> PartitionOutcome:
        """Search until proven or until the limits strike.

        Raises
        ------
        LimitReachedError : where they struck before the costs of layers were known
        """
        limits = self._limits
        table = cost_table(
            workload_operators(self._workload),
            [system for _, system in self._systems],
            limits,
            self._folder,
            self._costs.told,
            note=self._say,
        )
        self._table_seconds = limits.elapsed
        self._say(f"costs known after {self._table_seconds:.1f} s")
        for parts, system in self._systems:
            if limits.expired:
                break
            problem = problem_from_table(self._workload, system, self._metric, table)
            if problem.obstacle is None:
                found = self._candidate(parts, system, problem)
                with self._lock:
                    self._candidates.append(found)
                self._tell()
            else:
                self._unfit += 1
        with self._lock:
            self._complete = len(self._candidates) + self._unfit == len(self._systems)
        if self._candidates:
            self._say(f"{len(self._candidates)} partitions bounded after {limits.elapsed:.1f} s")
            self._tell()
            for one in sorted(self._candidates, key=lambda one: one.bound):
                if not limits.expired:
                    self._refine(one)
            self._branch()
            self._question(min(self._candidates, key=lambda one: one.value))
        return self.outcome()

    def outcome(self, message: str = "") -> PartitionOutcome:
        """What is known so far; may be asked for from any thread while the search runs."""
        with self._lock:
            candidates, (value, bound) = [replace(one) for one in self._candidates], self._state
        best = min(candidates, key=lambda one: one.value, default=None)
        if best is None and self._complete:
            message = "no partition runs every layer"
        elif best is None:
            message = self._costs.stopped
        elif not self._complete and not message:
            known = len(candidates) + self._unfit
            message = (
                f"{known} of {len(self._systems)} partitions looked at, so that there is no bound of all"
            )
        scheduled = sum(one.result is not None for one in candidates)
        goal = Fraction(0) if value is None else self._goal(value)
        return PartitionOutcome(
            status=self._status(best is not None, proven=bound is not None and bound == value),
            objective=self._objective,
            best=best,
            value=value,
            bound=bound,
            candidates=candidates,
            discarded=sum(one.result is None and one.bound >= goal for one in candidates),
            scheduled=scheduled,
            table_seconds=self._table_seconds,
            wall_seconds=self._limits.elapsed,
            trace=[*self._trace],
            message=message,
            unfit=self._unfit,
        )

    def _status(self, solved: bool, *, proven: bool) -> Status:
        if proven:
            return Status.OPTIMAL
        if self._complete and not solved:
            return Status.INFEASIBLE
        if self._limits.stop.is_set():
            return Status.INTERRUPTED
        return Status.FEASIBLE if solved else Status.UNKNOWN

    @property
    def _state(self) -> tuple[Fraction | None, Fraction | None]:
        """Best value, and the bound of all partitions once each has one."""
        value = min((one.value for one in self._candidates), default=None)
        if value is None or not self._complete:
            return value, None
        return value, min(value, *(one.bound for one in self._candidates))

    def _probe(self, problem: SchedulingProblem, ordering: Ordering) -> ScheduleSearch:
        """One of Herald's schedules, balanced by loads."""
        settings = HeraldSettings(metric_of(self._objective), ordering, patience=0)
        probe = ScheduleSearch(ScheduleGoal(problem, self._objective), replace(self._limits))
        probe.offer(
            herald(problem, settings, lambda: self._limits.expired), "herald", origin=Origin.HEURISTIC
        )
        return probe

    def _candidate(self, parts: Parts, system: System, problem: SchedulingProblem) -> Candidate:
        """What is known at once: Herald's breadth-first schedule and the bound in closed form."""
        probe = self._probe(problem, Ordering.BREADTH_FIRST)
        first_bounds(probe, feasible_options(problem))
        assert probe.bound is not None
        assert probe.answer is not None
        assert probe.evaluation is not None
        assert probe.key is not None
        found = probe.evaluation.makespan, probe.evaluation.energy
        return Candidate(parts, system, problem, probe.bound, probe.key, probe.answer, found)

    def _refine(self, one: Candidate) -> None:
        """The better of Herald's two schedules, and the LP's bound."""
        probe = self._probe(one.problem, Ordering.DEPTH_FIRST)
        basic_bounds(probe, feasible_options(one.problem))
        assert probe.answer is not None
        assert probe.evaluation is not None
        with self._lock:
            if probe.key is not None and probe.key < one.value:
                one.value, one.schedule = probe.key, probe.answer
                one.herald = probe.evaluation.makespan, probe.evaluation.energy
            if probe.bound is not None:
                one.bound = max(one.bound, probe.bound)
        self._tell()

    def _goal(self, value: Fraction) -> Fraction:
        """A partition whose bound reaches this cannot improve on ``value`` by more than the gap allows."""
        return value * (1 - Fraction(self._limits.gap))

    def _branch(self) -> None:
        """Schedule the partition of least bound, again and again."""
        number = count()
        open_ = [(one.bound, next(number), one) for one in self._candidates]
        heapq.heapify(open_)
        while True:
            self._tell()
            value = min(one.value for one in self._candidates)
            if not open_ or open_[0][0] >= self._goal(value) or self._limits.expired:
                return
            _, _, one = heapq.heappop(open_)
            self._question(one)
            self._schedule(one, value)
            if one.bound < self._goal(min(value, one.value)):
                heapq.heappush(open_, (one.bound, next(number), one))

    def _question(self, one: Candidate) -> None:
        """Count the costs of one partition again, once, before its schedule is told of.

        The file of costs is sealed against damage; whoever forges seals too is found out here.

        Raises
        ------
        InputError : where the file was wrong; what is known to be wrong is mended by then
        """
        if one.questioned or self._limits.expired:
            return
        one.questioned = True
        operators = workload_operators(self._workload)
        try:
            table = cost_table(operators, [one.system], self._limits, self._folder, metric=self._metric)
        except LimitReachedError:
            return
        problem = problem_from_table(self._workload, one.system, self._metric, table)
        if problem.content_hash != one.problem.content_hash:
            raise InputError(
                str(self._folder or cache_folder()),
                None,
                "cost tables were not what mappings cost; corrected where seen, call again or remove them",
            )

    def _schedule(self, one: Candidate, value: Fraction) -> None:
        """A slice of exact scheduling for one partition; what it finds counts at once."""
        limits = self._limits.share(longest=_SLICE * 2**one.visits).stopping(BoundReaches(self._goal(value)))
        known = one.answer(self._objective)
        assert known.answer is not None
        search = ScheduleSearch(
            ScheduleGoal(one.problem, self._objective), limits, lambda point: self._learn(one, search)
        )
        search.confirm(
            known.answer,
            "earlier visit" if one.visits else "herald",
            origin=Origin.EXACT if one.visits else Origin.HEURISTIC,
        )
        search.raise_bound(one.bound, "earlier visit")
        CpSatScheduler().solve(search)
        self._learn(one, search)
        one.visits += 1

    def _learn(self, one: Candidate, search: ScheduleSearch) -> None:
        """Take over what a search for one partition knows."""
        if search.key is None or search.bound is None:
            return
        with self._lock:
            one.result = search.result("cpsat", CpSatScheduler().version)
            one.value, one.bound = min(one.value, search.key), max(one.bound, search.bound)
        self._tell()

    def _tell(self) -> None:
        value, bound = self._state
        last = self._trace[-1] if self._trace else None
        if last is not None and (last.key, last.bound) == (value, bound):
            return
        improved = last is None or last.key is None or (value is not None and value < last.key)
        point = TracePoint(self._limits.elapsed, value, bound, "partitions", improved)
        self._trace.append(point)
        if self._told is not None:
            self._told(point)

    def _say(self, text: str) -> None:
        if self._note is not None:
            self._note(text)
