"""The live document of a question: a search feeds it, listeners receive its events, and it can be read at
any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from tilewright.formulation.result import TracePoint
    from tilewright.solvers.mapping.explore.cells import Reported
    from tilewright.solvers.mapping.explore.search import Watcher
    from tilewright.solvers.observer import Observer
    from tilewright.workloads.selection import SelectedLayer

Answer = TypeVar("Answer")


class Listener:
    """Receives the events of a live document; a subclass overrides those that it wants.

    All are called from the thread of the caller, except ``point``, ``phase`` and ``changed``.
    """

    def begin(self, live: LiveDocument[Any]) -> None:
        """The question is stated, and the search begins."""

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        """The search for one layer begins, the ``index``-th of ``total``, counted from 1."""

    def point(self, point: TracePoint) -> None:
        """A search found a better answer or bound."""

    def phase(self, text: str) -> None:
        """Something else is searched for."""

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def goal(self, number: int, total: int, designs: int) -> None:
        """A goal of an exploration begins, counted from 1."""

    def reported(self, layer: SelectedLayer, design: int, reported: Reported, left: int) -> None:
        """An exploration has searched a layer on a design.

        Parameters
        ----------
        layer : that was searched
        design : its number in the grid
        reported : status, objective value and bound of that search
        left : designs that may still have to be looked at
        """

    def changed(self) -> None:
        """The document has a better answer or bound than before."""

    def part(self, index: int, part: Any) -> None:
        """The document has the part at that place, counted from 0, or a better one than before."""

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        """The search for a part ended; these come in their order.  An open one comes again."""

    def end(self, answer: Any) -> None:
        """The document is complete, or the search was ended."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a live document is about.

    Parameters
    ----------
    head : in one line
    notes : what the user should know of the question
    task : what is searched and what begins, where the document has no parts
    in_parts : whether the document grows part by part
    """

    head: str
    notes: tuple[str, ...] = ()
    task: tuple[str, str] | None = None
    in_parts: bool = False


def _event(name: str) -> Any:
    """A method that passes one kind of event on to all listeners."""

    def notify(live: LiveDocument[Any], *details: Any) -> None:
        for listener in live.listeners:
            getattr(listener, name)(*details)

    return notify


class LiveDocument(Generic[Answer]):
    """The document of a question while it is answered.  It observes its search, and notifies its listeners.

    Parameters
    ----------
    subject : what the document is about
    so_far : the answer as far as it is known, from any thread; an exploration has none before its end
    listeners : notified in this order
    """

    def __init__(
        self, subject: Subject, so_far: Callable[[], Answer] | None, listeners: Sequence[Listener]
    ) -> None:
        self.subject = subject
        self.listeners = tuple(listeners)
        self._so_far = so_far

    def so_far(self) -> Answer:
        """The answer as far as it is known; may be asked for from any thread."""
        assert self._so_far is not None
        return self._so_far()

    def begin(self) -> None:
        """The search begins."""
        for listener in self.listeners:
            listener.begin(self)

    layer, point, phase, note = _event("layer"), _event("point"), _event("phase"), _event("note")
    goal, reported = _event("goal"), _event("reported")
    part, answered, _changed = _event("part"), _event("answered"), _event("changed")

    def improved(self, point: TracePoint) -> None:
        """The search of the whole document found a better answer or bound."""
        self.point(point)
        self._changed()

    def end(self, answer: Answer) -> Answer:
        """The search has ended with this answer, which is returned."""
        for listener in self.listeners:
            listener.end(answer)
        return answer


def as_listeners(listener: Observer | Watcher | None) -> tuple[Listener, ...]:
    """The listeners that an observer of a search or the watcher of an exploration stands for."""
    if listener is None:
        return ()
    adapter = Listener()
    for name in ("layer", "point", "phase", "note", "goal", "reported"):
        if hasattr(listener, name):
            setattr(adapter, name, getattr(listener, name))
    return (adapter,)
