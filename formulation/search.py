"""The state of one running search: incumbent, bound, trace, limits.

Every solver and heuristic offers what it found and its bounds here.  Offers are re-evaluated by the evaluator
before they count, so no method can report a value that the evaluator does not confirm.  What lies outside the
searched space never becomes the incumbent, whoever offers it; the best such mapping is kept beside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.result import Beside, SearchResult, Status, TracePoint, relative_gap


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop, and with which resources to search.

    Parameters
    ----------
    seconds : for the whole call from the moment that ``started`` was taken; ``None`` for no limit
    gap : stop once the relative gap is at most this
    threads : workers of a parallel solver
    seed : of every random choice
    deterministic : whether two runs must give the same answer and trace
    stop : set from outside to end the search with what it has
    """

    seconds: float | None = None
    gap: float = 0.0
    threads: int = 2
    seed: int = 0
    deterministic: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    @property
    def remaining(self) -> float | None:
        """Seconds left, at least 0; ``None`` for no limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed)

    @property
    def expired(self) -> bool:
        """Whether the search must end now."""
        return self.stop.is_set() or (self.seconds is not None and self.elapsed >= self.seconds)

    def heed(self) -> None:
        """Between steps that cannot be stopped: raise ``TimeoutError`` once the search must end."""
        if self.expired:
            raise TimeoutError


class UnsoundBoundError(RuntimeError):
    """A bound was claimed that a confirmed value contradicts."""


class DisagreementError(RuntimeError):
    """The evaluator refuses what a solver's statement of the problem allows."""


class Incumbent:
    """Best value and best bound so far; safe to share between threads.

    What has the value is kept by the subclasses, which evaluate whatever is offered before it counts.

    Parameters
    ----------
    limits : when to stop
    listener : told of every change
    exact : whether the method that searches proves what it finds: the answer of one that does not is never
        ``optimal`` or ``infeasible``
    """

    def __init__(
        self, limits: Limits, listener: Callable[[TracePoint], None] | None = None, exact: bool = True
    ) -> None:
        self.limits = limits
        self.exact = exact
        self.value: Fraction | None = None
        self.bound: Fraction | None = None
        self.trace: list[TracePoint] = []
        self._listener = listener
        self._lock = threading.RLock()

    def raise_bound(self, bound: Fraction | int, source: str) -> None:
        """Tell that nothing has a value below ``bound``."""
        with self._lock:
            if self.bound is None or bound > self.bound:
                self.bound = Fraction(bound)
                self._record(source, improved=False, heuristic=False)

    @property
    def gap(self) -> float | None:
        return relative_gap(self.value, self.bound)

    @property
    def done(self) -> bool:
        """Whether the gap that was asked for is reached or a limit has struck."""
        gap = self.gap
        return self.limits.expired or (gap is not None and gap <= self.limits.gap)

    def _improves(self, value: Fraction) -> bool:
        return self.value is None or value < self.value

    def _record(self, source: str, *, improved: bool, heuristic: bool) -> None:
        point = TracePoint(self.limits.elapsed, self.value, self.bound, source, improved, heuristic)
        self.trace.append(point)
        if self._listener is not None:
            self._listener(point)

    def _check_bound(self, source: str) -> None:
        """Raise ``UnsoundBoundError`` where the bound exceeds the value that the evaluator confirmed.

        Some solver claimed a proof that is wrong, and that must never pass in silence.
        """
        if self.value is not None and self.bound is not None and self.bound > self.value:
            raise UnsoundBoundError(f"{source} claims the bound {self.bound}, but {self.value} was reached")

    def _status(self, *, infeasible: bool, error: bool) -> Status:
        if self.exact and self.value is not None and self.bound == self.value:
            return Status.OPTIMAL
        if error:
            return Status.ERROR
        if self.exact and self.value is None and infeasible:
            return Status.INFEASIBLE
        if self.limits.stop.is_set():
            return Status.INTERRUPTED
        return Status.UNKNOWN if self.value is None else Status.FEASIBLE


class Search(Incumbent):
    """Best mapping of a layer and best bound so far."""

    def __init__(
        self,
        problem: LayerProblem,
        limits: Limits,
        listener: Callable[[TracePoint], None] | None = None,
        exact: bool = True,
    ) -> None:
        super().__init__(limits, listener, exact)
        self.problem = problem
        self.mapping: Mapping | None = None
        self.evaluation: Evaluation | None = None
        self.beside: Beside | None = None

    def offer(self, mapping: Mapping, source: str, heuristic: bool = False) -> Fraction | None:
        """Re-evaluate a mapping; keep it if legal, inside the space and better.

        Returns its key, ``None`` if it is illegal or lies outside.
        """
        evaluation = self.problem.evaluate(mapping)
        if evaluation.violations:
            return None
        key = self.problem.key_of(evaluation)
        reason = self.problem.outside(mapping)
        with self._lock:
            if reason is not None:
                if self.beside is None or key < self.beside.value:
                    self.beside = Beside(mapping, evaluation, key, reason, source)
                return None
            if self._improves(key):
                self.mapping, self.evaluation, self.value = mapping, evaluation, key
                self._record(source, improved=True, heuristic=heuristic)
        return key

    def confirm(self, mapping: Mapping, source: str) -> Fraction:
        """Offer a mapping that the statement of the problem calls legal; returns its key.

        Raises ``DisagreementError`` where the evaluator calls it illegal, or where it lies outside the space:
        a solver that passed over it in silence would claim to have seen everything.
        """
        key = self.offer(mapping, source)
        if key is None:
            raise DisagreementError(
                f"the evaluator rejects a mapping that {source} takes for legal, or it lies outside the space"
            )
        return key

    def result(
        self, solver: str, version: str, exhausted: bool = False, message: str = "", error: bool = False
    ) -> SearchResult:
        """The outcome; ``exhausted`` tells that the whole space is accounted for.

        Raises ``UnsoundBoundError`` where a bound exceeds the value that the evaluator confirmed.
        """
        with self._lock:
            self._check_bound(solver)
            status = self._status(infeasible=exhausted, error=error)
            return SearchResult(
                status=status,
                mapping=self.mapping,
                evaluation=self.evaluation,
                value=self.value,
                bound=None if status is Status.INFEASIBLE else self.bound,
                trace=tuple(self.trace),
                solver=solver,
                solver_version=version,
                seed=self.limits.seed,
                wall_seconds=self.limits.elapsed,
                input_hash=self.problem.input_hash,
                message=message,
                beside=self.beside,
            )
