"""One search in a thread of its own, so that signals and limits end it whatever the solver does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.result import SearchResult, Status, TracePoint
from tilewright.formulation.search import Limits, Search
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.watched import Watched
from tilewright.workloads.errors import InputError, one_line


@dataclass
class SearchRun:
    """A search that is running or has ended.

    Parameters
    ----------
    build : states the problem; part of the call that the limits cover
    warm_starts : mappings to begin with; those that are illegal here are left out, those from outside the
        searched space are kept beside
    rejected : why some of them are not begun with, a line each
    """

    build: Callable[[], LayerProblem]
    solver: str
    limits: Limits
    listener: Callable[[TracePoint], None] = lambda point: None
    warm_starts: Sequence[Mapping] = ()
    problem: LayerProblem | None = None
    rejected: list[str] = field(default_factory=list)
    _watched: Watched[SearchResult] = field(init=False)
    _search: Search | None = None
    _trace: list[TracePoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._watched = Watched(self._work, self.limits)

    def run(self) -> SearchResult:
        """Search, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        InputError : where the problem cannot be stated
        Interruption : at a second signal
        """
        self._watched.run()
        if isinstance(self.failure, InputError):
            raise self.failure
        answer = self._watched.answer
        return self._failed() if answer is None or self._watched.abandoned else answer

    @property
    def failure(self) -> BaseException | None:
        """What ended the search before its time, if anything did."""
        return self._watched.failure

    def _work(self) -> SearchResult:
        self.problem = self.build()
        starts = [mapping for mapping in self.warm_starts if self._fits(mapping)]
        return solve(self.problem, self.solver, self.limits, self._listen, starts, self._began)

    def _began(self, search: Search) -> None:
        self._search = search

    def _fits(self, mapping: Mapping) -> bool:
        """Whether a mapping is legal, inside the space or not."""
        assert self.problem is not None
        try:
            broken = self.problem.evaluate(mapping).violations
        except InputError as error:
            broken = (str(error),)
        if broken:
            self.rejected.append(f"a mapping is illegal here: {'; '.join(broken)}")
            return False
        reason = self.problem.outside(mapping)
        if reason is not None:
            self.rejected.append(f"a mapping lies outside the searched space: {reason}")
        return True

    def _listen(self, point: TracePoint) -> None:
        if not self._watched.abandoned:
            self._trace.append(point)
            self.listener(point)

    def _failed(self) -> SearchResult:
        """What is known without the solver's own answer; a mapping that it had found is kept."""
        if self.failure is not None:
            message = f"{type(self.failure).__name__}: {one_line(self.failure)}"
        else:
            message = "the solver did not stop in time and was left behind"
        failed = self.failure is not None
        if self._search is not None and self._search.mapping is not None:
            return self._search.result(self.solver, version("tilewright"), False, message, failed)
        if failed:
            status = Status.ERROR
        else:
            status = Status.INTERRUPTED if self.limits.stop.is_set() else Status.UNKNOWN
        trace = tuple(self._trace)
        found = no_result(self.solver, self.limits, status, message, self.problem, trace)
        return found if self._search is None else replace(found, beside=self._search.beside)


def no_result(
    solver: str,
    limits: Limits,
    status: Status,
    message: str,
    problem: LayerProblem | None = None,
    trace: tuple[TracePoint, ...] = (),
) -> SearchResult:
    """A result without a mapping."""
    return SearchResult(
        status=status,
        mapping=None,
        evaluation=None,
        value=None,
        bound=trace[-1].bound if trace and status is not Status.ERROR else None,
        trace=trace,
        solver=solver,
        solver_version=version("tilewright"),
        seed=limits.seed,
        wall_seconds=limits.elapsed,
        input_hash="" if problem is None else problem.input_hash,
        message=message,
    )
