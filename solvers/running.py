"""Running one method on one search: whatever ends it becomes a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Method, Outcome
from tilewright.formulation.result import Answer, Evaluation, Result, Status, TracePoint
from tilewright.formulation.search import DisagreementError, P, Search, UnsoundBoundError
from tilewright.foundation.errors import InputError
from tilewright.solvers.background import failure_text
from tilewright.solvers.watched import Watched

LEFT_BEHIND = "the search did not stop in time and was left behind"
_EXPECTED = (MemoryError, OverflowError, DisagreementError)


def run_method(
    search: Search[P, Answer, Evaluation],
    method: Method[Search[P, Answer, Evaluation]],
    name: str,
    before: Callable[[], None] = lambda: None,
) -> Result[Answer, Evaluation]:
    """Let a method search, and give the result.

    Parameters
    ----------
    name : of the method as the user wrote it
    before : what is offered before the method begins
    """

    def work() -> Outcome:
        before()
        return method.solve(search)

    outcome = caught(work)
    try:
        return search.result(name, method.version, outcome.exhausted, outcome.message, outcome.error)
    except UnsoundBoundError as failure:
        return search.refute(name, method.version, failure)


def caught(work: Callable[[], Outcome]) -> Outcome:
    """What the work comes to; a limit that strikes in it and the failures of a method are outcomes too."""
    try:
        return work()
    except LimitReachedError as reached:
        return Outcome(message=str(reached))
    except _EXPECTED as failure:
        return Outcome(message=failure_text(failure), error=True)


class SearchRun(Generic[P, Answer, Evaluation]):
    """A search in a thread of its own, whose state can be read at any time.

    Signals and limits end it whatever its method does; what it has found is in the search, so none is lost.

    Parameters
    ----------
    state : states the problem and begins the search with the listener that it gets; part of the call that
        the limits cover
    method : who searches, and how the user wrote it
    listener : called with every better answer and bound
    before : offers what is known from the start
    grace : seconds that a search has to come back once it is asked to stop; ``None`` for the usual ones
    unstated : the message if the limit strikes before the problem is stated
    """

    def __init__(
        self,
        state: Callable[[Callable[[TracePoint], None]], Search[P, Answer, Evaluation]],
        method: Method[Search[P, Answer, Evaluation]],
        name: str,
        limits: Limits,
        listener: Callable[[TracePoint], None] = lambda point: None,
        before: Callable[[Search[P, Answer, Evaluation]], None] = lambda search: None,
        grace: float | None = None,
        unstated: Callable[[], str] = lambda: "",
    ) -> None:
        self.search: Search[P, Answer, Evaluation] | None = None
        self.limits = limits
        self._state = state
        self._method = method
        self._name = name
        self._listener = listener
        self._before = before
        self._unstated = unstated
        self._watched: Watched[Result[Answer, Evaluation]] = Watched(self._work, limits, grace=grace)

    @property
    def failure(self) -> BaseException | None:
        """What ended the search before its time, if anything did."""
        return self._watched.failure

    def run(self) -> Result[Answer, Evaluation]:
        """Search, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        InputError : where the problem cannot be stated
        Interruption : at a second signal
        """
        self._watched.run()
        failure, answer = self._watched.failure, self._watched.answer
        if isinstance(failure, InputError):
            raise failure
        if isinstance(failure, LimitReachedError):
            return self.so_far(str(failure))
        if failure is not None:
            return self.so_far(failure_text(failure), error=True)
        if answer is None or self._watched.abandoned:
            return self.so_far("" if self.limits.stop.is_set() else LEFT_BEHIND)
        return answer

    def so_far(self, message: str = "", *, error: bool = False) -> Result[Answer, Evaluation]:
        """The best answer and bound that are known."""
        if self.search is None:
            reported = message if error else self._unstated() or message
            return no_result(self._name, self._method.version, self.limits, reported, error=error)
        try:
            return self.search.result(self._name, self._method.version, False, message, error)
        except UnsoundBoundError as failure:
            return self.search.refute(self._name, self._method.version, failure)

    def _work(self) -> Result[Answer, Evaluation]:
        search = self._state(self._on_point)
        self.search = search
        return run_method(search, self._method, self._name, lambda: self._before(search))

    def _on_point(self, point: TracePoint) -> None:
        if not self._watched.abandoned:
            self._listener(point)


def no_result(
    method: str, version: str, limits: Limits, message: str, *, error: bool = False, **known: Any
) -> Result[Any, Any]:
    """The result of a search that never began.

    Parameters
    ----------
    method, version : of the method that would have searched
    limits : give the seed, the seconds that passed, and whether the user stopped the call
    message : why it never began
    error : whether that was a fault, and neither a limit nor the user
    known : further fields of the result that are known all the same
    """
    status = Status.INTERRUPTED if limits.stop.is_set() else Status.UNKNOWN
    fields: dict[str, Any] = {
        "status": Status.ERROR if error else status,
        "answer": None,
        "evaluation": None,
        "key": None,
        "bound": None,
        "trace": (),
        "method": method,
        "version": version,
        "seed": limits.seed,
        "wall_seconds": limits.elapsed,
        "input_hash": "",
        "message": message,
    }
    return Result(**fields | known)
