"""Running CP-SAT under the limits of a search: solutions and bounds passed on as they come.

Every solver is made here.  What it says is a proof only where the release passes its self-test
(`cpsat_probe`) and the model's enforced rows are narrow (`cpsat_rows`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import cache, cached_property
from typing import Protocol

from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.solvers.background import Background
from tilewright.solvers.cpsat_probe import fault
from tilewright.solvers.cpsat_rows import narrowed

POLL = 0.02
"""Seconds between two looks at the limits."""
_SPARE, _DIGITS, _CEILING, _WHOLE = 6, 50, 1 << 62, 0.25
"""Bits that an objective's numbers may grow by in presolve, those of a float that are relied on, the largest
number that CP-SAT computes with, and how far below an integer its float may be."""


class Values(Protocol):
    """A solution: of a callback while CP-SAT runs, or of the solver once it has ended."""

    def value(self, expression: cp_model.LinearExprT) -> int:
        """The value of a variable or of a linear expression."""

    def boolean_value(self, literal: cp_model.LiteralT) -> bool:
        """The value of a literal."""


def _new_solver() -> cp_model.CpSolver:
    """A solver with the parameters that all runs share."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.catch_sigint_signal = False  # else Ctrl-C is no longer this process's to handle
    parameters.presolve_inclusion_work_limit = 0  # leaves out what adds up enforced rows in 32 bits
    parameters.auto_detect_greater_than_at_least_one_of = False  # takes clauses as they are stated
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = 0.0
    return solver


@cache
def release_fault() -> str:
    """Why proofs of the installed release are rejected, or nothing; determined once per process."""
    return fault(_new_solver)


class _Reported(cp_model.CpSolverSolutionCallback):
    """Passes solutions on."""

    def __init__(self, use: Callable[[Values], None]) -> None:
        super().__init__()
        self._use = use

    def on_solution_callback(self) -> None:
        self._use(self)


class CpSatRun:
    """Solves one model once, in a thread of its own.

    Wide enforced rows are restated in the model.  Where its answer is no proof, ``doubt`` says why: the
    status is then never ``OPTIMAL`` or ``INFEASIBLE``, and the bound is that of the variables' domains.

    Parameters
    ----------
    limits : threads, seed and time; whether the run must be reproducible
    over : whether the search around this run has ended
    on_solution : called with every better solution; returns whether that is enough
    on_bound : called with every better lower bound of the objective, an integer
    seconds : for this run, within the limits
    effort : deterministic time that it may take, ``None`` for any
    brief : leave out what costs presolve time and gains little where the solution takes a second

    Reproducible runs are silent until they end: in which sequence two workers report is left to chance, what
    they have found after so much deterministic time is not.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        limits: Limits,
        over: Callable[[], bool],
        on_solution: Callable[[Values], bool | None] | None = None,
        on_bound: Callable[[int], None] | None = None,
        *,
        workers: int | None = None,
        seconds: float | None = None,
        effort: float | None = None,
        brief: bool = False,
    ) -> None:
        self.solver = _new_solver()
        self.doubt = ""
        self.status: cp_model.CpSolverStatus = cp_model.UNKNOWN
        self._model = model
        self._limits = limits
        self._over = over
        self._on_solution = on_solution
        self._on_bound = on_bound
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        parameters = self.solver.parameters
        parameters.num_workers = max(1, limits.threads if workers is None else workers)
        parameters.random_seed = limits.seed
        parameters.interleave_search = limits.deterministic
        self._own_limits = limits.share(longest=seconds)
        if effort is not None:
            parameters.max_deterministic_time = effort
        if brief:
            parameters.symmetry_level = 0
            parameters.linearization_level = 0
            parameters.cp_model_probing_level = 0

    @property
    def has_solution(self) -> bool:
        return self.status in (cp_model.OPTIMAL, cp_model.FEASIBLE)

    @property
    def effort(self) -> float:
        """Deterministic time that the run took."""
        return float(self.solver.response_proto.deterministic_time)

    @property
    def branches(self) -> int:
        """Decisions that the run took."""
        return int(self.solver.response_proto.num_branches)

    @property
    def bound(self) -> int:
        """The lower bound of the objective at the end, as the integer that CP-SAT computes with.

        Where it ends before it has one, it says 0.
        """
        reported = int(self.solver.response_proto.inner_objective_lower_bound)
        unsaid = not self.has_solution and not reported
        if self.doubt or unsaid or not math.isfinite(self.solver.best_objective_bound):
            return self._domain_bound
        return reported + self._offset

    @property
    def _offset(self) -> int:
        """The constant of the objective."""
        return math.floor(self._model.proto.objective.offset)

    @property
    def _domain_bound(self) -> int:
        """What the domains of its variables leave of the objective."""
        proto = self._model.proto
        least = self._offset
        for index, c in zip(proto.objective.vars, proto.objective.coeffs, strict=True):
            domain = proto.variables[index].domain
            least += min(c * domain[0], c * domain[len(domain) - 1])
        return least

    @cached_property
    def _largest(self) -> int:
        """A number that presolve may bring into the objective: of it, a variable and a row, multiplied."""
        proto = self._model.proto
        domains = (variable.domain for variable in proto.variables)
        ends = (abs(domain[i]) for domain in domains for i in (0, len(domain) - 1))
        weights = (abs(c) for row in proto.constraints if row.has_linear() for c in row.linear.coeffs)
        costs = sum(map(abs, proto.objective.coeffs))
        return int(max(ends, default=0) * max(weights, default=1) * costs)

    def solve(self) -> cp_model.CpSolverStatus:
        """Run until the model is closed, a limit strikes, the search is over or ``on_solution`` has enough.

        What callbacks or the solver raise is raised here.
        """
        thread = Background(self._work, "cp-sat")
        thread.start()
        try:
            while thread.is_alive:
                thread.join(POLL)
                if self._enough.is_set() or self._over() or self._own_limits.expired:
                    self.solver.stop_search()
        finally:
            while thread.is_alive:
                self.solver.stop_search()
                thread.join(POLL)
        if self._failure is not None:
            raise self._failure
        thread.raise_failure()
        return self.status

    def _work(self) -> None:
        self.doubt = release_fault() or narrowed(self._model)
        left = self._own_limits.remaining  # CP-SAT itself looks at the wall's clock
        if left is not None and self._own_limits.clock is not time.process_time:
            self.solver.parameters.max_time_in_seconds = max(0.01, left)
        silent = self._limits.deterministic
        if self._on_bound is not None and not (silent or self.doubt):
            self.solver.best_bound_callback = self._bounded
        reported = None if silent or self._on_solution is None else _Reported(self._offer)
        self.status = self._believed(self.solver.solve(self._model, reported))
        if silent and self.has_solution:
            self._offer(self.solver)

    def _believed(self, status: cp_model.CpSolverStatus) -> cp_model.CpSolverStatus:
        """The status, without a proof that is none."""
        if not self.doubt:
            return status
        return {cp_model.OPTIMAL: cp_model.FEASIBLE, cp_model.INFEASIBLE: cp_model.UNKNOWN}.get(
            status, status
        )

    def _offer(self, values: Values) -> None:
        if self._on_solution is not None:
            use = self._on_solution
            self._guarded(lambda: use(values))

    def _bounded(self, bound: float) -> None:
        if self._on_bound is not None and math.isfinite(bound):
            use = self._on_bound
            self._guarded(lambda: use(integer_bound(bound, self._largest)))

    def _guarded(self, call: Callable[[], bool | None]) -> None:
        """Exceptions must not cross into CP-SAT: the first one is kept, and ends the run."""
        if self._failure is not None:
            return
        try:
            enough = bool(call())
        except BaseException as failure:
            self._failure = failure
            enough = True
        if enough:
            self._enough.set()
            self.solver.stop_search()


def integer_bound(bound: float, largest: int) -> int:
    """The bound on an integer objective that CP-SAT gives as a float while it runs.

    Presolve replaces variables of the objective by others and takes out what their coefficients share.  The
    float is a number of that objective times the shared factor, plus an offset that may be as large as any
    number of the model; where such numbers leave a float's digits, the bound is lowered by as much.

    Parameters
    ----------
    largest : number that can occur in the objective
    """
    error = min(largest << _SPARE, _CEILING) >> _DIGITS
    return math.floor(bound) - error if error else math.floor(bound + _WHOLE)
