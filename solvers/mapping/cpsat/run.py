"""One run of CP-SAT on a stated problem: limits kept, incumbents and bounds passed on as they come."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ortools.sat.python import cp_model

from tilewright.formulation.expression import Variable
from tilewright.formulation.search import Limits
from tilewright.solvers.company import Company
from tilewright.solvers.mapping.cpsat.statement import Stated

POLL = 0.02  # seconds between two looks at the limits


class Ending(Enum):
    """How a run ended."""

    CLOSED = "closed"  #: the model has no further solution, or its best one is known
    STOPPED = "stopped"  #: asked to stop, for a smaller model or because of a limit
    FAILED = "failed"  #: CP-SAT gave up


@dataclass(frozen=True, slots=True)
class Report:
    """What a run gave.

    Parameters
    ----------
    bound : no solution of the model has a smaller objective; ``None`` where there is none at all
    effort : deterministic time that it took
    message : of a failure
    """

    ending: Ending
    bound: int | None
    effort: float
    message: str = ""


class Run:
    """Solves one model once.

    Parameters
    ----------
    limits : resources; ``done`` decides when to stop
    found : called with every improving assignment; returns whether to stop for a smaller model
    bounded : called with every better lower bound of the objective
    done : whether the search around this run is over
    effort : deterministic time that the run may take, ``None`` for any

    Reproducible runs are silent until they end: in which sequence two workers report is left to chance, what
    they have found after so much deterministic time is not.
    """

    def __init__(
        self,
        stated: Stated,
        limits: Limits,
        found: Callable[[Mapping[Variable, int]], bool],
        bounded: Callable[[int], None],
        done: Callable[[], bool],
        effort: float | None = None,
    ) -> None:
        self._stated = stated
        self._limits = limits
        self._found = found
        self._bounded = bounded
        self._done = done
        self._effort = effort
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self._solver = cp_model.CpSolver()
        self._status: Any = cp_model.UNKNOWN

    def solve(self) -> Report:
        """Run until the model is closed, a limit strikes or ``found`` asks to stop."""
        self._configure()
        company = Company(self._work, "cp-sat")
        company.start()
        try:
            while company.is_alive:
                company.join(POLL)
                if self._stop.is_set() or self._done():
                    self._solver.stop_search()
        finally:
            while company.is_alive:
                self._solver.stop_search()
                company.join(POLL)
        if self._failure is not None:
            raise self._failure
        company.raise_failure()
        return self._report()

    def _configure(self) -> None:
        limits, parameters = self._limits, self._solver.parameters
        parameters.num_workers = max(1, limits.threads)
        parameters.random_seed = limits.seed
        parameters.catch_sigint_signal = False
        parameters.relative_gap_limit = 0.0
        parameters.absolute_gap_limit = 0.0
        if limits.remaining is not None:
            parameters.max_time_in_seconds = limits.remaining
        if limits.deterministic:
            parameters.interleave_search = True
        if self._effort is not None:
            parameters.max_deterministic_time = self._effort

    def _work(self) -> None:
        model = self._stated.decisions.model
        if self._limits.deterministic:
            self._status = self._solver.solve(model)
            if self._status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                self._on_solution(self._solver.boolean_value)
        else:
            self._solver.best_bound_callback = self._on_bound
            self._status = self._solver.solve(model, _Solutions(self._on_solution))

    def _on_solution(self, value: Callable[[Any], int]) -> None:
        self._guarded(lambda: self._found(self._stated.assignment(value)))

    def _on_bound(self, bound: float) -> None:
        if math.isfinite(bound):
            # a float may have been rounded up from the integer bound
            safe = math.floor(bound - abs(bound) * 2.0**-51)
            self._guarded(lambda: self._bounded(safe))

    def _guarded(self, call: Callable[[], bool | None]) -> None:
        """Exceptions must not cross into CP-SAT."""
        try:
            stop = bool(call())
        except BaseException as failure:
            self._failure = failure
            stop = True
        if stop:
            self._stop.set()
            self._solver.stop_search()

    def _report(self) -> Report:
        response = self._solver.response_proto
        effort = float(response.deterministic_time)
        if self._status == cp_model.MODEL_INVALID:
            reason = self._stated.decisions.model.validate().strip()
            return Report(Ending.FAILED, None, effort, f"CP-SAT rejects the model: {reason}")
        if self._status == cp_model.INFEASIBLE:
            return Report(Ending.CLOSED, None, effort)
        ending = Ending.CLOSED if self._status == cp_model.OPTIMAL else Ending.STOPPED
        return Report(ending, int(response.inner_objective_lower_bound), effort)


class _Solutions(cp_model.CpSolverSolutionCallback):
    """Hands every solution on."""

    def __init__(self, handle: Callable[[Callable[[Any], int]], None]) -> None:
        super().__init__()
        self._handle = handle

    def on_solution_callback(self) -> None:
        self._handle(self.boolean_value)
