"""The one search core, generic over what is searched.

A *problem* judges answers.  A *search* keeps the best answer, the bound and the trace, and is the only lock.
A *method* (:mod:`tilewright.formulation.method`) offers answers and bounds.  Offers are judged by the
problem's evaluator before they count, so no method can report a value that the evaluator does not confirm.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeVar

from tilewright.formulation.effort import EffortLog, Tally
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import (
    Answer,
    Evaluation,
    Origin,
    OutOfSpaceSolution,
    Result,
    Status,
    TracePoint,
    relative_gap,
)
from tilewright.foundation.errors import TilewrightError

Evaluation_co = TypeVar("Evaluation_co", covariant=True)
Listener = Callable[[TracePoint], None]


class UnsoundBoundError(TilewrightError, RuntimeError):
    """A bound was claimed that a confirmed key contradicts."""


class DisagreementError(TilewrightError, RuntimeError):
    """The evaluator refuses what a method's statement of the problem allows."""


@dataclass(frozen=True, slots=True)
class Judgement(Generic[Answer, Evaluation_co]):
    """A problem's evaluation of an answer.

    Parameters
    ----------
    answer : what was judged, completed where that leaves something open that the problem fills in
    key : objective key: less is better
    violations : rules of the machine or demands that it breaks; none for a legal answer
    outside : why it is outside the searched space; ``None`` for one that lies in it
    """

    answer: Answer
    evaluation: Evaluation_co
    key: Fraction
    violations: tuple[str, ...] = ()
    outside: str | None = None


class Problem(Protocol[Answer, Evaluation_co]):
    """What is searched."""

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that decides what is asked."""

    def judge(self, answer: Answer) -> Judgement[Answer, Evaluation_co]:
        """What an answer costs, and what it breaks."""


P = TypeVar("P", bound=Problem)  # type: ignore[type-arg]


@dataclass(slots=True)
class _Incumbent(Generic[Answer, Evaluation]):
    """What all views of one search share."""

    answer: Answer | None = None
    evaluation: Evaluation | None = None
    key: Fraction | None = None
    bound: Fraction | None = None
    out_of_space: OutOfSpaceSolution[Answer, Evaluation] | None = None
    improved_at: float | None = None
    trace: list[TracePoint] = field(default_factory=list)
    doubts: dict[str, None] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    effort: EffortLog = field(default_factory=EffortLog)


class Search(Generic[P, Answer, Evaluation]):
    """A running search: best answer and best bound so far; safe to share between threads.

    Parameters
    ----------
    limits : when to stop
    listener : called with every change
    exact : whether the method that searches proves what it finds: the answer of one that does not is never
        ``optimal`` or ``infeasible``
    """

    def __init__(
        self, problem: P, limits: Limits, listener: Listener | None = None, exact: bool = True
    ) -> None:
        self.problem = problem
        self.limits = limits
        self.exact = exact
        self._listener = listener
        self._best: _Incumbent[Answer, Evaluation] = _Incumbent()
        self._on_legal: Callable[[Fraction, Answer], None] = lambda key, answer: None

    def within(self, limits: Limits) -> Self:
        """Another view of the same search: the same answer, bound and trace under limits of its own."""
        view = copy.copy(self)
        view.limits = limits
        return view

    def over(self, problem: P) -> Self:
        """Another view of the same search, for a method that looks at a part of the space.

        Parameters
        ----------
        problem : the same over a part; what else there is must be no better than the best answer known, so
            that bounds of the part hold for all
        """
        view = copy.copy(self)
        view.problem = problem
        return view

    def telling(self, on_legal: Callable[[Fraction, Answer], None]) -> Self:
        """Another view of the same search, which tells of every legal answer that it is offered, as this view
        goes on to do.
        """
        before = self._on_legal

        def told(key: Fraction, answer: Answer) -> None:
            before(key, answer)
            on_legal(key, answer)

        view = copy.copy(self)
        view._on_legal = told
        return view

    def resume(self, earlier: Result[Answer, Evaluation]) -> None:
        """Go on where an earlier search of the same problem ended: with its answer, its bound and its trace.

        Seconds count on if the limits' own do: their clock starts as much earlier as that search took.
        """
        if earlier.input_hash != self.problem.content_hash:
            raise ValueError("a search can continue only from one of the same problem")
        with self._best.lock:
            self._best.answer, self._best.evaluation = earlier.answer, earlier.evaluation
            self._best.key, self._best.bound, self._best.out_of_space = (
                earlier.key,
                earlier.bound,
                earlier.out_of_space,
            )
            self._best.trace[:] = earlier.trace
            better = [point.seconds for point in earlier.trace if point.improved]
            self._best.improved_at = better[-1] if better else None
            self._best.effort.add(earlier.effort)

    def count_with(self, whole: Search[P, Answer, Evaluation]) -> None:
        """Count the effort of this search as that of another one, of whose space it searches a part."""
        self._best.effort = whole._best.effort

    # -- what is known -------------------------------------------------------------------------------

    @property
    def answer(self) -> Answer | None:
        return self._best.answer

    @property
    def evaluation(self) -> Evaluation | None:
        return self._best.evaluation

    @property
    def key(self) -> Fraction | None:
        """Of the best answer, as the evaluator computes it."""
        return self._best.key

    @property
    def bound(self) -> Fraction | None:
        return self._best.bound

    @property
    def out_of_space(self) -> OutOfSpaceSolution[Answer, Evaluation] | None:
        """The best legal answer from outside the searched space."""
        return self._best.out_of_space

    @property
    def improved_at(self) -> float | None:
        return self._best.improved_at

    @property
    def trace(self) -> tuple[TracePoint, ...]:
        return tuple(self._best.trace)

    @property
    def gap(self) -> float | None:
        return relative_gap(self.key, self.bound)

    @property
    def proven(self) -> bool:
        """Whether the bound has met the best key."""
        return self.key is not None and self.key == self.bound

    @property
    def done(self) -> bool:
        """Whether the gap that was asked for is reached or a limit has struck."""
        gap = self.gap
        return (gap is not None and gap <= self.limits.gap) or self.limits.ends(self)

    # -- what methods say ----------------------------------------------------------------------------

    def at_work(self, method: str) -> AbstractContextManager[Tally]:
        """A method works in this thread; what is counted in :attr:`tally` meanwhile is its effort."""
        return self._best.effort.at_work(method, self.limits.clock)

    @property
    def tally(self) -> Tally:
        """Counters of the method that is at work in this thread."""
        return self._best.effort.tally

    def offer(self, answer: Answer, source: str, origin: Origin = Origin.EXACT) -> Fraction | None:
        """Judge an answer; keep it if it is legal, lies in the searched space and is better.

        Returns its key, ``None`` if it is illegal or lies outside: then it never touches a claim.
        """
        return self.keep(self.problem.judge(answer), source, origin)

    def keep(
        self, judgement: Judgement[Answer, Evaluation], source: str, origin: Origin = Origin.EXACT
    ) -> Fraction | None:
        """Keep an answer that the search's problem has judged, as :meth:`offer` does."""
        if judgement.violations:
            return None
        with self._best.lock:
            if judgement.outside is not None:
                self._set_out_of_space(judgement, source)
                return None
            if self._best.key is None or judgement.key < self._best.key:
                self._best.answer, self._best.evaluation = judgement.answer, judgement.evaluation
                self._best.key, self._best.improved_at = judgement.key, self.limits.elapsed
                self._record(source, improved=True, origin=origin)
        self._on_legal(judgement.key, judgement.answer)
        return judgement.key

    def confirm(self, answer: Answer, source: str, origin: Origin = Origin.EXACT) -> Fraction:
        """Offer an answer that the method takes for legal; returns its key.

        Raises
        ------
        DisagreementError : where the evaluator calls it illegal, or it lies outside the searched space: a
            method that passed over it in silence would claim to have seen everything
        """
        key = self.offer(answer, source, origin)
        if key is None:
            judgement = self.problem.judge(answer)
            why = judgement.violations[0] if judgement.violations else judgement.outside
            raise DisagreementError(f"the evaluator rejects an answer that {source} takes for legal: {why}")
        return key

    def raise_bound(self, bound: Fraction | int, source: str) -> None:
        """Report that nothing has a key below ``bound``."""
        with self._best.lock:
            if self._best.bound is None or bound > self._best.bound:
                self._best.bound = Fraction(bound)
                self._record(source, improved=False, origin=Origin.EXACT)

    def doubt(self, why: str) -> None:
        """Note why what a method has seen is no proof; reported where nothing else is one."""
        if why:
            with self._best.lock:
                self._best.doubts[why] = None

    def _set_out_of_space(self, judgement: Judgement[Answer, Evaluation], source: str) -> None:
        """Keep the best legal answer from outside the searched space, apart from the claim."""
        known = self._best.out_of_space
        if judgement.outside is not None and (known is None or judgement.key < known.key):
            self._best.out_of_space = OutOfSpaceSolution(
                judgement.answer, judgement.evaluation, judgement.key, judgement.outside, source
            )

    def _record(self, source: str, *, improved: bool, origin: Origin) -> None:
        point = TracePoint(self.limits.elapsed, self.key, self.bound, source, improved, origin)
        self._best.trace.append(point)
        if self._listener is not None:
            self._listener(point)

    # -- the outcome ---------------------------------------------------------------------------------

    def result(
        self, method: str, version: str, exhausted: bool = False, message: str = "", error: bool = False
    ) -> Result[Answer, Evaluation]:
        """The outcome; ``exhausted`` means that the whole space is accounted for.

        Parameters
        ----------
        method, version : name and version of the method that searched
        exhausted : whether the whole space is accounted for, so that the answer is optimal or there is none
        message : what to show with the status; by default doubts about the method's proof, if any
        error : whether the method died or misbehaved; what it found before stays

        Raises
        ------
        UnsoundBoundError : where a bound exceeds the key that the evaluator confirmed: some method claimed
            a proof that is wrong, and that must never pass in silence
        """
        with self._best.lock:
            key, bound = self._best.key, self._best.bound
            if key is not None and bound is not None and bound > key:
                raise UnsoundBoundError(f"{method} claims the bound {bound}, but {key} was reached")
            status = self._status(exhausted=exhausted, error=error)
            doubts = () if status in (Status.OPTIMAL, Status.INFEASIBLE) else self._best.doubts
            return Result(
                status=status,
                answer=self._best.answer,
                evaluation=self._best.evaluation,
                key=key,
                bound=None if status is Status.INFEASIBLE else bound,
                trace=tuple(self._best.trace),
                method=method,
                version=version,
                seed=self.limits.seed,
                wall_seconds=self.limits.elapsed,
                input_hash=self.problem.content_hash,
                message="; ".join(filter(None, (message, *doubts))),
                out_of_space=self._best.out_of_space,
                effort=self._best.effort.effort(self.limits.clock()),
            )

    def refute(self, method: str, version: str, failure: UnsoundBoundError) -> Result[Answer, Evaluation]:
        """The outcome of a search whose bound was refuted: what was found, and no bound."""
        with self._best.lock:
            self._best.bound = None
        return self.result(method, version, message=str(failure), error=True)

    def _status(self, *, exhausted: bool, error: bool) -> Status:
        if self.exact and self.proven:
            return Status.OPTIMAL
        if error:
            return Status.ERROR
        if self.exact and self.key is None and exhausted:
            return Status.INFEASIBLE
        if self.limits.stop.is_set():
            return Status.INTERRUPTED
        return Status.UNKNOWN if self.key is None else Status.FEASIBLE
