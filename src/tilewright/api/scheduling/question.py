"""What the questions for schedules, plans and co-designs share: one search feeds the live document."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from tilewright.api.arguments import SearchRequest
from tilewright.api.live import LiveDocument, Subject
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError

Answer = TypeVar("Answer")


class Run(Protocol):
    """A search in a thread of its own."""

    def run(self) -> Any:
        """Search, and return what was found."""

    def so_far(self) -> Any:
        """What has been found."""


class SearchedQuestion(Generic[Answer]):
    """A question that one search answers; kinds of it fill in the search and the document.

    Parameters
    ----------
    head : what the search is about, in one line
    title : what is searched
    objective_name : as a user names it
    """

    method: str
    """The usual one."""

    def __init__(self, head: str, title: str, objective_name: str) -> None:
        self._head = f"{head}, objective {objective_name}"
        self._title = title
        self.shown_objective = parse_objective("cycles" if objective_name == "makespan" else objective_name)

    def answer(self, request: SearchRequest) -> Answer:
        """What `solve` calls.

        Raises
        ------
        InputError : for whatever of the request does not fit the question
        """
        if request.deterministic:
            raise InputError("deterministic", None, "expected False: it is for layers")
        method = request.method or self.method
        starts = self._starts(request.warm_starts)

        def document(result: Any, complete: bool) -> Answer:
            return self._document(run, result, method, request, complete=complete)

        subject = Subject(self._head, task=(self._title, self._detail(method)))
        live = LiveDocument(subject, lambda: document(run.so_far(), False), request.listeners)
        live.begin()
        run = self._begin(method, request, live, starts)
        return live.end(document(run.run(), True))

    def _detail(self, method: str) -> str:
        """What begins."""
        return "costs of layers"

    def _starts(self, given: Any) -> Any:
        """What warm starts stand for; raises ``InputError``, here for any."""
        if given not in ((), [], None):
            raise InputError("warm_starts", None, "expected none: they are for layers")
        return None

    def _begin(self, method: str, request: SearchRequest, live: LiveDocument[Answer], starts: Any) -> Run:
        """The search, which feeds the live document; raises ``InputError`` for an unknown method."""
        raise NotImplementedError

    def _document(
        self, run: Any, result: Any, method: str, request: SearchRequest, *, complete: bool
    ) -> Answer:
        """The answer that a result is."""
        raise NotImplementedError
