"""The live document of a question: a search feeds it, listeners hear of it, it can be read at any time."""

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
    """Hears of a live document; a subclass overrides what it wants to hear.

    Everything is told from the thread of the caller, but for ``point``, ``phase`` and ``changed``.
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
        """An exploration has searched a layer on a design; ``left`` designs are open."""

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


class LiveDocument(Generic[Answer]):
    """The document of a question while it is answered.  It is the observer of its search.

    Parameters
    ----------
    so_far : the answer as far as it is known, from any thread; an exploration has none before its end
    listeners : told in this order
    """

    def __init__(
        self, subject: Subject, so_far: Callable[[], Answer] | None, listeners: Sequence[Listener]
    ) -> None:
        self.subject = subject
        self._so_far = so_far
        self._listeners = tuple(listeners)

    def so_far(self) -> Answer:
        """The answer as far as it is known; may be asked for from any thread."""
        assert self._so_far is not None
        return self._so_far()

    def begin(self) -> None:
        """The search begins."""
        for listener in self._listeners:
            listener.begin(self)

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.layer(index, total, layer)

    def point(self, point: TracePoint) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.point(point)

    def improved(self, point: TracePoint) -> None:
        """The search of the whole document found a better answer or bound."""
        self.point(point)
        for listener in self._listeners:
            listener.changed()

    def phase(self, text: str) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.phase(text)

    def note(self, text: str) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.note(text)

    def goal(self, number: int, total: int, designs: int) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.goal(number, total, designs)

    def reported(self, layer: SelectedLayer, design: int, reported: Reported, left: int) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.reported(layer, design, reported, left)

    def part(self, index: int, part: Any) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.part(index, part)

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        """As listeners hear it."""
        for listener in self._listeners:
            listener.answered(index, part, is_open)

    def end(self, answer: Answer) -> Answer:
        """The search has ended with this answer, which is returned."""
        for listener in self._listeners:
            listener.end(answer)
        return answer


class Observing(Listener):
    """A listener that tells an observer of layers, points, phases and notes."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def layer(self, index: int, total: int, layer: SelectedLayer) -> None:
        self._observer.layer(index, total, layer)

    def point(self, point: TracePoint) -> None:
        self._observer.point(point)

    def phase(self, text: str) -> None:
        self._observer.phase(text)

    def note(self, text: str) -> None:
        self._observer.note(text)


class Watching(Listener):
    """A listener that tells a watcher of the goals and cells of an exploration."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def goal(self, number: int, total: int, designs: int) -> None:
        self._watcher.goal(number, total, designs)

    def reported(self, layer: SelectedLayer, design: int, reported: Reported, left: int) -> None:
        self._watcher.reported(layer, design, reported, left)


def observing(observer: Observer | None) -> tuple[Listener, ...]:
    """The listeners that an observer stands for."""
    return () if observer is None else (Observing(observer),)
