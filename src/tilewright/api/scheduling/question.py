"""What the questions for schedules, plans and co-designs share: one search feeds the live document."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from tilewright.api.arguments import SearchRequest
from tilewright.api.live import LiveDocument, Subject
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.foundation.errors import InputError

Answer = TypeVar("Answer")


class Run(Protocol):
    """A search in a thread of its own."""

    def run(self) -> Any:
        """Search, and return what was found."""

    def so_far(self) -> Any:
        """What has been found."""


class SearchedQuestion(Generic[Answer]):
    """A question that one search answers; kinds of it fill in the subject, the search and the document.

    Parameters
    ----------
    method : the usual one
    """

    method: str

    @property
    def shown_objective(self) -> Objective:
        """The objective with which figures on the way are written."""
        return shown_objective(self._objective)

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
        head, title, detail = self._subject(method)
        subject = Subject(f"{head}, objective {self._objective}", task=(title, detail))

        def document(result: Any, complete: bool) -> Answer:
            return self._document(run, result, method, request, complete=complete)

        live = LiveDocument(subject, lambda: document(run.so_far(), False), request.listeners)
        live.begin()
        run = self._begin(method, request, live, starts)
        return live.end(document(run.run(), True))

    @property
    def _objective(self) -> str:
        """Its name."""
        raise NotImplementedError

    def _subject(self, method: str) -> tuple[str, str, str]:
        """What the search is about, what is searched, and what begins."""
        raise NotImplementedError

    def _starts(self, given: Any) -> Any:
        """What warm starts stand for; raises ``InputError``, here for any."""
        if given not in ((), [], None):
            raise InputError("warm_starts", None, "expected none: they are for layers")
        return None

    def _begin(self, method: str, request: SearchRequest, live: LiveDocument[Answer], starts: Any) -> Run:
        """The search, which tells the live document; raises ``InputError`` for an unknown method."""
        raise NotImplementedError

    def _document(
        self, run: Any, result: Any, method: str, request: SearchRequest, *, complete: bool
    ) -> Answer:
        """The answer that a result is."""
        raise NotImplementedError


def shown_objective(name: str) -> Objective:
    """The objective by which values of one of that name are written; a makespan is of cycles."""
    return parse_objective("cycles" if name == "makespan" else name)
